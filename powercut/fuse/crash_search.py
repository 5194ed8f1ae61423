"""The first pass over a recording: every distinct image that its crashes leave, by rank.

Images are not kept: a ``Found`` has the crash from which its image is built again. If the journal
has few, all are found. Otherwise all states of the model are found where a crash point has few
unsynced pieces, or the model keeps all of them in order. Where it has more, only those that reveal
most bugs are found: everything and nothing lost, prefixes, one piece lost, one piece alone, some
random ones, torn and stale writes. The work is bounded: of a long journal, crash points between
acknowledgements are left out, evenly, first those within a series of writes to one file. If there
are many acknowledgements, fewer images are found after each, and at last some of these points are
left out as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from faults.crash_counter import page_prefixes
from faults.crash_point import CrashKind, CrashPoint, Phase
from oracles.history import History
from powercut.explorer.even_share import EvenShare
from powercut.explorer.large_writes import fitting
from powercut.explorer.page_cache import PageCache
from powercut.explorer.partial_write import PartialWrite
from powercut.fuse.found_image import Found, Key, Rank, losses_of, rank_of
from sim.choices import SeededChoices
from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.cache.operation import Operation, Write
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.micro_operation import WriteBlock
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.persistence import PersistenceModel, model_named
from sim.disk.crash.state_space import State, StateSpace
from sim.disk.crash.survivor_set import SurvivorSet, can_be_stale, can_tear, closed
from sim.disk.crash.unsynced import Unsynced

MOST_SECTORS: Final = 48
"""Unsynced sectors beyond which some writes have fewer pieces."""

_WORK_WITHIN_SERIES: Final = 800_000
"""The approximate number of pieces that one search applies between writes to one file."""

_WORK_BEHIND_SERIES: Final = 2_000_000
"""The same behind the last of such writes, and behind every other operation."""

_WORK_OF_ACKNOWLEDGEMENTS: Final = 4_800_000
"""The same after acknowledgements."""

_WORK_OF_POINT: Final = 120_000
"""The approximate number of pieces that prefixes, losses of one, or ones alone apply at a point."""

_CLASSES: Final = 4

_MOST_IMAGES: Final = 1000
"""The images of a journal above which not all of them are sought."""

_MOST_STEPS: Final = 20_000
"""The pieces that are decided for that: 0.1 to 0.2 seconds."""

_ALL_PIECES: Final = 8
_ALL_STATES: Final = 256
_OLDER: Final = 16
_NEWEST: Final = 3
_MOST: Final = 400
_RANDOM: Final = 4
"""Random images of a crash point."""

_RANDOM_IN_ALL: Final = 200
"""Random images of all crash points together, if these are so few that each has more then."""

_KILLS_OF_WRITE: Final = 4
_FIRST: Final = -(1 << 20)
_EARLY: Final = -8
"""The values with which ``order`` begins after acknowledgements, and behind series of writes."""


class Search(NamedTuple):
    """The images of one model. ``points`` of ``all_points`` crash points were visited, and
    ``exhaustive`` is whether no state that the model allows was left out.
    """

    found: list[Found]
    points: int
    all_points: int
    exhaustive: bool


def search(journal: Journal, history: History, model: PersistenceModel) -> Search:
    """Return the distinct images that crashes of ``journal`` leave under ``model``."""
    fitted = fitting(model, journal, MOST_SECTORS)
    writes = (operation for operation in journal if isinstance(operation, Write))
    if fitted == model and all(_step_of_kills(write, model) == 1 for write in writes):
        everything = _Searcher(journal, history, model, exhaustive=True, steps=_MOST_STEPS).run()
        if everything.exhaustive:
            return everything
    return _Searcher(journal, history, fitted, exhaustive=fitted == model).run()


def image_of(
    unsynced: Unsynced, cache: PageCache, crash: CrashPoint, operation: Operation, next_inode: int
) -> Image:
    """Build the image of ``crash``; ``unsynced`` and ``cache`` have read the operations before."""
    if crash.kind is CrashKind.POWER_CUT:
        return unsynced.crash(crash.survivors, next_inode)
    if crash.phase is Phase.DURING:
        assert isinstance(operation, Write), operation
        cache = cache.copy()
        cache.advance(operation._replace(data=operation.data[: crash.kept]), unsynced)
    return Image.of_platter(cache.inodes, next_inode)


def built(journal: Journal, chosen: Iterable[Found]) -> Iterator[tuple[Key, Image]]:
    """Build the images that were found, by model and crash point; each comes with its key."""
    by_model: dict[str, dict[int, list[Found]]] = {}
    for found in chosen:
        by_model.setdefault(found.model, {}).setdefault(found.done, []).append(found)
    for name, by_number in by_model.items():
        unsynced = Unsynced(
            fitting(model_named(name), journal, MOST_SECTORS), journal.image.platter
        )
        cache = PageCache(journal.image.cached)
        for number in range(max(by_number) + 1):
            if number:
                operation = journal[number - 1]
                unsynced.advance(operation, number)
                cache.advance(operation, unsynced)
            for found in by_number.get(number, ()):
                following = journal[min(number, len(journal) - 1)]
                image = image_of(unsynced, cache, found.crash, following, journal.next_inode)
                yield found.key, image


class _Kind(NamedTuple):
    """A kind of crash points: the bound on their work, and the ``order`` of their first images."""

    share: EvenShare
    order: int


class _Searcher:
    """Searches the images of one journal.

    With ``steps`` it seeks all of them, and ends early where these do not suffice.
    """

    def __init__(
        self,
        journal: Journal,
        history: History,
        model: PersistenceModel,
        *,
        exhaustive: bool,
        steps: int | None = None,
    ) -> None:
        self._journal = journal
        self._history = history
        self._model = model
        self._places: dict[Key, int] = {}
        self._found: list[Found] = []
        self._exhaustive = exhaustive
        self._steps_left = steps
        self._points: set[int] = set()
        operations = len(journal)
        self._within_series = _Kind(EvenShare(_WORK_WITHIN_SERIES, operations), 0)
        self._behind_series = _Kind(EvenShare(_WORK_BEHIND_SERIES, operations), _EARLY)
        self._acknowledged = _Kind(EvenShare(_WORK_OF_ACKNOWLEDGEMENTS, operations), _FIRST)
        each = _WORK_OF_ACKNOWLEDGEMENTS // max(1, len(history.entries))
        self._work_of_point = min(_WORK_OF_POINT, each // _CLASSES)
        self._random = _RANDOM_IN_ALL // (operations + len(history.entries) + 1)
        self._choices = SeededChoices(0)
        self._space: StateSpace | None = None

    def run(self) -> Search:
        journal, history = self._journal, self._history
        unsynced = Unsynced(self._model, journal.image.platter)
        cache = PageCache(journal.image.cached)
        reached = -1
        for number in range(len(journal) + 1):
            since = len(unsynced.micros)
            if number:
                operation = journal[number - 1]
                self._kills_during(operation, number, unsynced, cache)
                unsynced.advance(operation, number)
                cache.advance(operation, unsynced)
                since = 0 if unsynced.allows_more else min(since, len(unsynced.micros))
            entries = history.entries_by(number, returned=False)
            later = history.entries_by(number, returned=True)
            if number and (kind := self._kind(number)).share.is_left(number):
                self._visit(number, unsynced, cache, entries, since, kind)
            if later != reached and (
                number == len(journal) or self._acknowledged.share.is_left(number)
            ):
                self._visit(number, unsynced, cache, later, 0, self._acknowledged)
            reached = later
            if self._steps_left is not None and not self._finds_all():
                break
        kinds = (self._within_series, self._behind_series, self._acknowledged)
        self._exhaustive &= not any(kind.share.passed_over for kind in kinds)
        return Search(self._found, len(self._points), len(journal) + 1, self._exhaustive)

    def _finds_all(self) -> bool:
        """Return whether all images were found so far, and are not too many."""
        self._exhaustive &= len(self._found) <= _MOST_IMAGES
        return self._exhaustive

    def _kind(self, number: int) -> _Kind:
        """Return the kind of the crash point after an operation, from 1 on."""
        match self._journal[number - 1 : number + 1]:
            case [Write(inode=file), Write(inode=following)] if file == following:
                return self._within_series
        return self._behind_series

    def _visit(
        self,
        number: int,
        unsynced: Unsynced,
        cache: PageCache,
        entries: int,
        since: int,
        kind: _Kind,
    ) -> None:
        self._points.add(number)
        phase, operation = (Phase.AFTER, number) if number else (Phase.BEFORE, 1)
        kill = CrashPoint(operation, phase, CrashKind.KILL)
        self._add((entries, cache.key), Rank.EXTREME, kind.order, kill)
        space = self._space = StateSpace(unsynced, self._space)
        orders = dict.fromkeys(Rank, kind.order)
        for state in self._states(space, since, kind.share):
            rank = rank_of(space.ordering, state.survivors)
            crash = CrashPoint(operation, phase, CrashKind.POWER_CUT, state.survivors)
            orders[rank] += self._add((entries, state.key), rank, orders[rank], crash)

    def _add(self, key: Key, rank: Rank, order: int, crash: CrashPoint) -> bool:
        """Add an image that is new; return whether it is.

        Of the power cuts that leave one image, the one that loses least is kept: it stays
        possible longest when barriers are added.
        """
        place = self._places.setdefault(key, len(self._found))
        if place == len(self._found):
            self._found.append(Found(key, rank, order, self._model.name, crash, key[0]))
            return True
        if losses_of(crash) < self._found[place].losses:
            self._found[place] = self._found[place]._replace(crash=crash)
        return False

    def _kills_during(
        self, operation: Operation, number: int, unsynced: Unsynced, cache: PageCache
    ) -> None:
        if not isinstance(operation, Write):
            return
        entries = self._history.entries_by(number, returned=False)
        step = _step_of_kills(operation, self._model)
        self._exhaustive &= step == 1
        part = PartialWrite(operation, number, unsynced, cache)
        for kept in part.prefixes(page_prefixes(operation, self._model)[::step]):
            crash = CrashPoint(number, Phase.DURING, CrashKind.KILL, kept=kept)
            self._add((entries, part.cache.key), Rank.OTHER, 0, crash)

    def _states(self, space: StateSpace, since: int, share: EvenShare) -> Iterator[State]:
        if self._steps_left is not None:
            yield from space.all(since, max(self._steps_left, 0))
            self._steps_left -= space.steps
            self._exhaustive &= space.complete
            return
        count = len(space.micros)
        is_series = self._model.sequential and count < _ALL_STATES
        if count <= _ALL_PIECES or is_series:
            states = count + 1 - since if is_series else _ALL_STATES // 8
            share.spend(count * states)
            yield from islice(space.all(since, _ALL_STATES * 8), _ALL_STATES)
            if space.complete:
                return
        self._exhaustive = False
        blocks = _blocks(space.ordering)
        for survivors in dict.fromkeys(self._chosen(space.ordering, since)):
            share.spend(count + blocks)
            yield space.state_of(survivors)

    def _chosen(self, ordering: Ordering, since: int) -> Iterator[SurvivorSet]:
        """Yield the survivor sets that are tried, the new pieces being those from ``since`` on.

        ``since`` 0 means that every state is new, because an acknowledgement came.
        """
        count = len(ordering.micros)
        everything = (1 << count) - 1
        most = max(1, min(_MOST, self._work_of_point // (count + _blocks(ordering))))
        oldest = max(since - _OLDER, 0) if since else 0
        step = -(-(count - oldest) // most)
        recent = _newest_first(range(oldest, count), step)
        new = _newest_first(range(since, count), step)
        wanted = [everything, 0]
        wanted += [(1 << length) - 1 for length in new]
        wanted += [everything & ~(1 << index) for index in recent]
        wanted += [ordering.order[index] | 1 << index for index in new]
        random = max(_RANDOM, min(self._random, most))
        wanted += [self._choices.integer("", 0, everything) for _ in range(random)]
        for mask in wanted:
            yield SurvivorSet.of_mask(closed(ordering, mask), count)
        for index in recent:
            yield from _damaged(ordering, index)


def _step_of_kills(write: Write, model: PersistenceModel) -> int:
    """Return how many pages of a write are between two kills: 1 if none is left out."""
    return max(1, len(page_prefixes(write, model)) // _KILLS_OF_WRITE)


def _newest_first(pieces: range, step: int) -> list[int]:
    """Return the newest pieces, and of the others one in ``step``."""
    reverse = pieces[::-1]
    return [*reverse[:_NEWEST], *reverse[_NEWEST::step]]


def _blocks(ordering: Ordering) -> int:
    """Return the work for the data of one state, in units of the work for one piece."""
    sizes = [len(micro.data) for micro in ordering.micros if isinstance(micro, WriteBlock)]
    return sum(sizes) // (2 * BLOCK_BYTES)


def _damaged(ordering: Ordering, index: int) -> Iterator[SurvivorSet]:
    """Yield the survivor sets in which one write is torn in the middle, or stale."""
    micro, count = ordering.micros[index], len(ordering.micros)
    if not isinstance(micro, WriteBlock):
        return
    without = closed(ordering, ((1 << count) - 1) & ~(1 << index))
    if can_be_stale(ordering, without, index):
        yield SurvivorSet.of_mask(without, count, stale=(index,))
    survived = without | 1 << index
    if can_tear(ordering, survived, index):
        yield SurvivorSet.of_mask(survived, count, torn=((index, len(micro.data) // 2),))
