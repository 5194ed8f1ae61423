"""Repairs: missing barriers of a workload, and the failures that remain with them inserted.

Each barrier is inserted into the journal, which is then explored again: a repair is checked,
not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, combinations, islice
from typing import Final, TypeAlias

from oracles.history import History
from powercut.explorer.crash_state import (
    alone_along,
    comparable,
    done_at,
    killed_along,
    lost_pieces,
    unsynced_along,
)
from powercut.explorer.lost_pieces import LostPieces
from powercut.explorer.missing_barrier import (
    MissingBarrier,
    candidates,
    insert,
    is_inserted,
)
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.verdicts import Exploration, Failure
from sim.disk.cache.operation import Resize, SetAttributes, Write
from sim.disk.crash.journal import Journal
from sim.disk.crash.micro_operation import MicroOperation, NameChange
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.survivor_set import closed

MOST_BARRIERS: Final = 48
"""Missing barriers of one model after which no further one is searched for."""

_COMPARED_FAILURES: Final = 200
_EXPLORED: Final = 3
_PAIRED: Final = 8
_MOST_CANDIDATES: Final = 400
_MOST_FAILURES: Final = 256

Explore: TypeAlias = Callable[[RecordedWorkload, PersistenceModel], Exploration]


@dataclass(frozen=True, slots=True)
class Repair:
    """Missing barriers under one model, those that prevent most crashes first.

    ``left`` are the failures that remain with all of them, without those of kills. ``is_cut_off``
    is true if some remain because there are more barriers than are searched for.
    """

    barriers: tuple[MissingBarrier, ...]
    left: tuple[Failure, ...]
    is_cut_off: bool = False


def repair(exploration: Exploration, explore: Explore) -> Repair:
    """Search the missing barriers of an unsafe workload.

    The simplest failure that a barrier can make impossible decides where barriers are tried.
    The one that leaves the fewest failures is kept; where none leaves fewer, pairs are tried.
    This is repeated until no failure is left that a barrier can prevent, or there are
    ``MOST_BARRIERS``. In the end every barrier is removed that the others make unnecessary, or
    that makes no moment safe: a change that is not atomic stays so, whatever its barriers.
    """
    search = _Search(exploration, explore)
    barriers: tuple[MissingBarrier, ...] = ()
    left = search.left(barriers)
    while left and len(barriers) < MOST_BARRIERS:
        better = search.better(barriers, left)
        if better is None:
            break
        barriers, left = better
    is_cut_off = bool(left) and len(barriers) >= MOST_BARRIERS
    for barrier in barriers:
        others = tuple(each for each in barriers if each != barrier)
        # A later barrier, which is not searched for, may make a moment safe together with it.
        helps = is_cut_off and len(search.left(others)) > len(search.left(barriers))
        if search.moments(others) == search.moments(barriers) and not helps:
            barriers = others
    return Repair(barriers, search.left(barriers), is_cut_off)


def with_barriers(
    workload: RecordedWorkload, barriers: Iterable[MissingBarrier]
) -> RecordedWorkload:
    """Return the workload with all of these barriers."""
    for barrier in barriers:
        workload = insert(workload, barrier).workload
    return workload


def preventable(exploration: Exploration) -> tuple[Failure, ...]:
    """Return the failures of those moments that a barrier may make safe.

    None does where a kill does harm: a barrier only brings the disk nearer to the one that a
    kill leaves. None does where harm is done by the loss of pieces of the last operation alone,
    because no barrier fits between it and the crash. If the recovery must be crashed as well to do
    harm, this is said of the failure, not of the moment. Failures that lose a part of a file are
    left out where a kill does harm by leaving the file in part (``_in_part``).
    """
    killed = {failure.state for failure in exploration.failures if not failure.needs_power_cut}
    others = [failure for failure in exploration.failures if failure.state not in killed]
    alone = lost_alone(exploration, others)
    hopeless = _killed_moments(exploration, killed, others)
    hopeless |= {moment_of(each) for each in alone if len(each.crashes) == 1}
    left_out = _in_part(exploration, killed, others) | {each.state for each in alone}
    return tuple(
        failure
        for failure in others
        if moment_of(failure) not in hopeless and failure.state not in left_out
    )


Moment: TypeAlias = tuple[int, int]
"""The operations and the entries before a crash."""


def moment_of(failure: Failure) -> Moment:
    """Return the moment of the first crash of a failure."""
    return done_at(failure.crashes[0]), failure.entries


def _killed_moments(
    exploration: Exploration, killed: Collection[object], failures: Iterable[Failure]
) -> set[Moment]:
    """Return the moments of failures at which a kill leaves one of the states ``killed``."""
    if not killed:
        return set()
    moments = set(map(moment_of, failures))
    workload = exploration.workload
    keys = killed_along(workload.journal, exploration.model, {done for done, _ in moments})
    return {(done, entries) for done, entries in moments if (entries, keys[done]) in killed}


def _in_part(
    exploration: Exploration, killed: Collection[object], failures: Iterable[Failure]
) -> set[object]:
    """Return the states of failures that a kill of the same write to a file explains.

    The last operation changes the content of the file, or its attributes after that, and a kill
    before this change of content leaves one of the states ``killed``. A power cut that loses the
    change leaves the same disk, so the moment behind it is not safe with any barrier. A failure
    that loses content or attributes of the same file there, and nothing else, shows only another
    part of it, and so does one that loses more. Those that lose only names or other files are
    failures of their own.
    """
    journal, history = exploration.workload.journal, exploration.workload.history
    at: dict[int, list[tuple[int, Failure]]] = {}
    for failure in failures if killed else ():
        done, entries = moment_of(failure)
        change = _last_change_of_content(journal, done)
        if change and len(failure.crashes) == 1 and _is_last(change, entries, history):
            at.setdefault(done, []).append((change, failure))
    before = {change - 1 for those in at.values() for change, _ in those}
    keys = killed_along(journal, exploration.model, before)
    explained = {
        done: those
        for done, pairs in at.items()
        if (those := [each for change, each in pairs if (each.entries, keys[change - 1]) in killed])
    }
    found: set[object] = set()
    for done, micros in unsynced_along(journal, exploration.model, explained):
        file = journal[done - 1].inode
        lost = [{*lost_pieces(micros, each.crashes[0])} for each in explained[done]]
        parts = [each for each in lost if _is_of_content(each, file)]
        found.update(
            failure.state
            for failure, pieces in zip(explained[done], lost, strict=True)
            if any(part <= pieces for part in parts)
        )
    return found


def _last_change_of_content(journal: Journal, done: int) -> int:
    """Return the change of content that only changes of attributes of the same file follow, or 0.

    They are among the first ``done`` operations.
    """
    change = done
    while change and isinstance(journal[change - 1], SetAttributes):
        change -= 1
    if not change or not isinstance(journal[change - 1], Write | Resize):
        return 0
    return change if len({each.inode for each in journal[change - 1 : done]}) == 1 else 0


def _is_of_content(pieces: Collection[MicroOperation], file: int) -> bool:
    """Return whether there are pieces, all of the content or attributes of one file."""
    return bool(pieces) and all(
        each.number == file and not isinstance(each, NameChange) for each in pieces
    )


def _is_last(done: int, entries: int, history: History) -> bool:
    """Return whether no barrier fits between operation ``done`` and a crash after it."""
    return done > 0 and entries <= history.entries_by(done, returned=False)


def lost_alone(exploration: Exploration, failures: Iterable[Failure]) -> list[Failure]:
    """Return the failures that are due to the loss of pieces of the last operation alone.

    The pieces may be lost although everything before that operation is durable.
    """
    journal, history = exploration.workload.journal, exploration.workload.history
    at: dict[int, list[Failure]] = {}
    for failure in failures:
        done, entries = moment_of(failure)
        if _is_last(done, entries, history):
            at.setdefault(done, []).append(failure)
    found: list[Failure] = []
    for done, alone, unsynced in alone_along(journal, exploration.model, at):
        ordering, micros = alone.ordering, unsynced.micros
        # Where earlier names are not durable, a rename may have other pieces.
        last = [comparable(piece) for piece in micros if piece.operation == done]
        if [*map(comparable, ordering.micros)] != last:
            continue
        those = ((each, lost_pieces(micros, each.crashes[0])) for each in at[done])
        found += (failure for failure, lost in those if _may_lose(ordering, lost))
    return found


def _may_lose(ordering: Ordering, lost: Sequence[MicroOperation]) -> bool:
    """Return whether a power cut may lose these pieces, and no other ones."""
    pieces, those = [*map(comparable, ordering.micros)], {*map(comparable, lost)}
    survived = sum(1 << index for index, each in enumerate(pieces) if each not in those)
    return those <= set(pieces) and closed(ordering, survived) == survived


class OutOfTime(Exception):
    """The time is over; an exploration that was stopped proves nothing."""


def explored(found: Exploration) -> Exploration:
    """Return an exploration with further barriers; raise ``OutOfTime`` if it was stopped."""
    if found.stopped:
        raise OutOfTime
    return found


class _Search:
    """Explores one workload with various barriers."""

    def __init__(self, exploration: Exploration, explore: Explore) -> None:
        self._workload = exploration.workload
        self._model = exploration.model
        self._explore = explore
        self._is_over = partial(exploration.checker.is_over, exploration)
        # The workload with some barriers, to which others are added in turn.
        self._kept: tuple[tuple[MissingBarrier, ...], RecordedWorkload] = (), self._workload
        self._left: dict[frozenset[MissingBarrier], tuple[Failure, ...]] = {
            frozenset(): preventable(exploration)
        }

    def _with(self, barriers: tuple[MissingBarrier, ...]) -> RecordedWorkload:
        """Return the workload with these barriers."""
        others, last = barriers[:-1], barriers[-1:]
        if self._kept[0] != others:
            self._kept = others, with_barriers(self._workload, others)
        return with_barriers(self._kept[1], last)

    def left(self, barriers: tuple[MissingBarrier, ...]) -> tuple[Failure, ...]:
        """Return the failures that remain with these barriers."""
        key = frozenset(barriers)
        if key not in self._left:
            workload = self._with(barriers)
            self._left[key] = preventable(explored(self._explore(workload, self._model)))
        return self._left[key]

    def moments(self, barriers: tuple[MissingBarrier, ...]) -> set[tuple[int, int]]:
        """Return the moments at which a power cut fails: operations and entries before it."""
        journal = self._with(barriers).journal
        before = [0, *accumulate(not is_inserted(operation) for operation in journal)]
        return {
            (before[done_at(failure.crashes[0])], failure.entries)
            for failure in self.left(barriers)
        }

    def better(
        self, barriers: tuple[MissingBarrier, ...], left: tuple[Failure, ...]
    ) -> tuple[tuple[MissingBarrier, ...], tuple[Failure, ...]] | None:
        """Return ``barriers`` with one or two more that prevent failures of ``left``, or None."""
        workload = self._with(barriers)
        pool: list[MissingBarrier] = []
        for failure in _various(left):
            ranked = self._ranked(workload, failure, left)[:_EXPLORED]
            found = self._best(barriers, [(barrier,) for barrier in ranked])
            if found is not None:
                return found
            pool += ranked[:1]
        pairs = combinations(dict.fromkeys(pool[:_PAIRED]), 2)
        return self._best(barriers, list(pairs))

    def _best(
        self,
        barriers: tuple[MissingBarrier, ...],
        more: Sequence[tuple[MissingBarrier, ...]],
    ) -> tuple[tuple[MissingBarrier, ...], tuple[Failure, ...]] | None:
        tried = [(*barriers, *each) for each in more]
        if not tried:
            return None
        count, first = self._remaining(barriers)
        # Only on btrfs does a barrier cause failures: it ends the order of names. Otherwise the
        # sample had left out those that are new.
        known = {failure.state for failure in self.left(barriers)}

        def is_better(found: tuple[MissingBarrier, ...]) -> bool:
            new = sum(failure.state not in known for failure in self.left(found))
            return self._remaining(found) < (count + new, first)

        found = min(tried, key=self._remaining)
        if not is_better(found):
            return None
        # One that covers fewer other pieces leaves more images, but no further losses.
        fewest = _of_fewest_losses(self.left(found))
        alike = (each for each in tried if _of_fewest_losses(self.left(each)) == fewest)
        found = next(each for each in alike if is_better(each))
        return found, self.left(found)

    def _remaining(self, barriers: tuple[MissingBarrier, ...]) -> tuple[int, int]:
        """Return the number of failures that remain, then how early the first of them is.

        An image that several moments leave counts once, at the first of them.
        """
        left = self.left(barriers)
        first = min((operations for operations, _ in self.moments(barriers)), default=0)
        return len(left), -first

    def _ranked(
        self, workload: RecordedWorkload, failure: Failure, left: Sequence[Failure]
    ) -> list[MissingBarrier]:
        """Return the barriers that make a failure impossible.

        Those that make most of the others, which are ``left``, impossible come first. Of barriers
        that are equal in this journal, the first one is kept.
        """
        others = [each for each in left[:_COMPARED_FAILURES] if each is not failure]
        lost = LostPieces(workload, self._model, [failure, *others])
        found: dict[tuple[tuple[int, int, int], ...], tuple[int, MissingBarrier]] = {}
        for barrier in islice(candidates(workload, self._model, failure), _MOST_CANDIDATES):
            if self._is_over():
                raise OutOfTime
            insertion = insert(workload, barrier)
            if insertion.syncs in found:
                continue
            prevented = lost.prevented(insertion)
            if any(each is failure for each in prevented):
                found[insertion.syncs] = (len(prevented), barrier)
        ranked = sorted(found.values(), key=lambda each: -each[0])
        return [barrier for _, barrier in ranked]


def _of_fewest_losses(failures: Iterable[Failure]) -> set[tuple[int, object]]:
    """Return the states of failures, less those that lose all pieces of another one, and more.

    Whatever prevents that one at the same moment prevents these as well.
    """
    at: dict[object, list[tuple[frozenset[int], Failure]]] = {}
    for failure in failures:
        survivors = failure.crashes[0].survivors
        lost = frozenset((*survivors.lost, *[index for index, _ in survivors.torn]))
        at.setdefault((moment_of(failure), failure.crashes[1:]), []).append((lost, failure))
    states: set[tuple[int, object]] = set()
    for those in at.values():
        fewest: set[frozenset[int]] = set()
        for lost, failure in sorted(those, key=lambda each: len(each[0])):
            if not any(each < lost for each in fewest):
                fewest.add(lost)
                states.add(failure.state)
    return states


def _various(failures: Iterable[Failure]) -> Iterable[Failure]:
    """Return the first failures that differ in the moment of the crash or the first loss."""
    found: dict[tuple[object, ...], Failure] = {}
    for failure in failures:
        point = failure.crashes[0]
        loss = point.survivors.first_loss
        found.setdefault((point.operation, failure.entries, loss), failure)
    return islice(found.values(), _MOST_FAILURES)
