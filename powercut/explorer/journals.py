"""Journals: every crash image of a recorded lifetime.

The journal of a lifetime is read once, operation by operation. Between two operations, and
between two pages of a long write, the process may be killed; after each operation the power
may be cut, with every survivor set that the persistence model allows.

A crash point needs only the states in which a piece of the latest operation makes a difference:
all others were built at the crash point before it. There are two exceptions. After an
acknowledgement every state is built anew, because a state that was correct before may be
incorrect now. A barrier that fails, that covers a piece without one that it had to follow, that
passes over a name, or that begins a log tree may allow states that no earlier crash point had
(``Unsynced.allows_more``), and a further one may do so in a recovery after a kill.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice
from operator import or_
from typing import Final, NamedTuple

from faults.crash_counter import page_prefixes
from faults.crash_point import CrashKind, CrashPoint, Phase
from oracles.history import History
from powercut.explorer.crash_state import at_start, read_journal
from powercut.explorer.even_share import EvenShare
from powercut.explorer.large_writes import fitting
from powercut.explorer.limits import Limits
from powercut.explorer.page_cache import PageCache, changes_without_pieces
from powercut.explorer.partial_write import PartialWrite
from sim.choices import SeededChoices
from sim.disk.cache.operation import Operation, Write
from sim.disk.crash.image import Image
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.state_space import State, StateSpace
from sim.disk.crash.unsynced import Unsynced

BRANCHES_PER_STATE: Final = 16
"""The steps for each wanted state after which the walk through the states is abandoned."""

FEWEST_STATES: Final = 8
"""States of a crash point that are built whatever share of the checks is left for it."""

REPRESENTATIVES_PER_PART: Final = 8
"""Enough for every prefix, every single loss and survival, and every torn end."""

MOST_STEPS: Final = 500_000
"""The approximate number of pieces that are decided or applied for one journal: some seconds."""

MOST_STEPS_OF_POINT: Final = 200_000
"""Steps of one crash point, after which only random states are added."""

FEW_PIECES: Final = 48
"""The most pieces of a crash point that is never skipped."""

THIN_STEPS: Final = 4
"""Prefixes, and losses of one part, of a crash point for which no work is left."""

CALL_STEPS: Final = 8
"""Prefixes, and losses of one call, of each crash point of a thin exploration."""

MOST_SECTORS: Final = 4096
"""Unsynced sectors beyond which some writes have fewer pieces."""

MOST_PREFIXES: Final = 32
"""Kills inside one write; in a longer one they are spread evenly over its pages."""

Key = tuple[object, ...]


class CrashImage(NamedTuple):
    """An image that a crash leaves.

    ``key`` is equal for images that no check can distinguish. ``crashes`` are the crash points
    that led to the image, one for each lifetime. ``entries`` is the number of entries that the
    history had at the first crash.
    """

    image: Image
    key: Key
    crashes: tuple[CrashPoint, ...]
    entries: int


class _Point(NamedTuple):
    """Crash points after operation ``number``, in the lifetime that follows ``before``.

    ``cache`` is the page cache at that operation, ``share`` the work that is left.
    """

    next_inode: int
    cache: PageCache
    number: int
    before: tuple[CrashPoint, ...]
    entries: int
    share: EvenShare

    @property
    def first(self) -> int:
        """The operation of the workload at which it was crashed first."""
        return self.before[0].operation if self.before else self.number

    def crash(self, image: Image, key: Key, point: CrashPoint) -> CrashImage:
        return CrashImage(image, (self.entries, *key), (*self.before, point), self.entries)


class Journals:
    """Builds the crash images of recorded lifetimes.

    ``is_new`` decides, by the key of an image and the number of crashes that led to it,
    whether the image is worth building. ``built`` counts states, wanted or not. ``exhaustive``
    becomes false when a crash point has more states than ``limits`` allow, or than are left for
    it of ``checks``, the checks for the journal of the workload; the caller spends them. If it
    ``is_thin``, each crash point has a few states. ``is_decided`` is called with the operation at
    which states are left out; if it returns True, each crash point has a few states from there on.
    """

    def __init__(
        self,
        history: History,
        limits: Limits,
        is_new: Callable[[Key, int], bool],
        checks: EvenShare | None = None,
        *,
        is_thin: bool = False,
        is_decided: Callable[[int], bool] = lambda _operation: False,
    ) -> None:
        self.built = 0
        self.exhaustive = not is_thin
        self._is_thin = is_thin
        self._is_decided = is_decided
        self._history = history
        self._limits = limits
        self._is_new = is_new
        self._checks = checks

    def crashes(
        self,
        journal: Journal,
        model: PersistenceModel,
        before: tuple[CrashPoint, ...] = (),
        entries: int = 0,
    ) -> Iterator[CrashImage]:
        """Yield every crash image of the lifetime that is recorded in ``journal``.

        ``before`` are the crashes that preceded the lifetime; it is empty for that of the
        workload, whose own entries count. For a recovery, ``entries`` is the number of
        history entries when the workload was crashed.
        """
        fitted = fitting(model, journal, MOST_SECTORS)
        self.exhaustive = self.exhaustive and not fitted.is_reduced
        share = EvenShare(MOST_STEPS, len(journal))
        unsynced = at_start(journal, fitted)
        cache = PageCache(journal.image.cached)
        next_inode = journal.next_inode
        reached, since, skipped = 0, 0, False
        for number in range(len(journal) + 1):
            if number:
                operation = journal[number - 1]
                waiting = len(unsynced.micros)
                if not before:
                    entries = self._history.entries_by(number, returned=False)
                point = _Point(next_inode, cache, number, before, entries, share)
                is_visited = self._is_visited(unsynced, point)
                if is_visited:
                    yield from self._kills_during(unsynced, operation, point)
                unsynced.advance(operation, number)
                cache.advance(operation, unsynced)
                count = len(unsynced.micros)
                since = 0 if unsynced.allows_more or (skipped and count < waiting) else since
                since = min(since, count)
                skipped = not is_visited
                if is_visited:
                    changed = since < count or changes_without_pieces(
                        operation, unsynced, nested=len(before) < self._limits.nested
                    )
                    if changed or entries != reached:
                        yield from self._crashes_at(unsynced, point, since)
                        reached = entries
                    since = count
            if not before:
                entries = self._history.entries_by(number, returned=True)
            if entries != reached or not number:
                point = _Point(next_inode, cache, number, before, entries, share)
                # The operation before it may have used up the work. Then it gets a few states.
                if self._states_left(point) > 0 or number == len(journal):
                    yield from self._crashes_at(unsynced, point, 0)
                    reached, since = entries, len(unsynced.micros)
        self.exhaustive = self.exhaustive and not share.passed_over

    def power_cuts_at_the_end(
        self, journal: Journal, model: PersistenceModel
    ) -> Iterator[CrashImage]:
        """Yield every image that a power cut leaves after the last operation of a workload."""
        fitted = fitting(model, journal, MOST_SECTORS)
        self.exhaustive = self.exhaustive and not fitted.is_reduced
        count = len(journal)
        unsynced, cache = read_journal(journal, fitted, count)
        share = EvenShare(MOST_STEPS, count)
        entries = len(self._history.entries)
        point = _Point(journal.next_inode, cache, count, (), entries, share)
        for crashed in self._crashes_at(unsynced, point, 0):
            if crashed.crashes[0].kind is CrashKind.POWER_CUT:
                yield crashed

    def _is_visited(self, unsynced: Unsynced, point: _Point) -> bool:
        """Return whether a crash point has few pieces, or there is work left for it."""
        if self._states_left(point) <= 0:
            self._leaves_out(point)
            return False
        return len(unsynced.micros) <= FEW_PIECES or point.share.is_left(point.number)

    def _states_left(self, point: _Point) -> int:
        """Return the number of checks that are left for the states of a crash point."""
        return sys.maxsize if self._checks is None else self._checks.left(point.first)

    def _leaves_out(self, point: _Point) -> bool:
        """Leave out states of a crash point; return whether all further ones have a few."""
        self.exhaustive = False
        self._is_thin = self._is_thin or self._is_decided(point.first)
        return self._is_thin

    def _crashes_at(self, unsynced: Unsynced, point: _Point, since: int) -> Iterator[CrashImage]:
        """Yield the kill and the power cuts right after an operation."""
        phase = Phase.AFTER if point.number else Phase.BEFORE
        operation = max(point.number, 1)
        depth = len(point.before) + 1
        space = StateSpace(unsynced)
        killed, key = self._killed(unsynced, point.cache, point)
        yield point.crash(killed, key, CrashPoint(operation, phase, CrashKind.KILL))
        for inodes, state_key, survivors in self._states(space, since, point):
            self.built += 1
            if self._is_new((point.entries, state_key), depth):
                image = Image.of_platter(inodes, point.next_inode)
                crash = CrashPoint(operation, phase, CrashKind.POWER_CUT, survivors)
                yield point.crash(image, (state_key,), crash)
        point.share.spend(space.steps + len(space.micros))

    def _states(self, space: StateSpace, since: int, point: _Point) -> Iterator[State]:
        if self._is_thin:
            yield from _thinned(space, space.calls, CALL_STEPS)
            return
        left = max(self._states_left(point), FEWEST_STATES)
        # The other half is for the representative states if these are not all.
        limit, count = min(self._limits.states_per_point, left // 2), len(space.micros)
        if count > FEW_PIECES and not point.share.is_left(point.number):
            yield from _thinned(space, space.parts, THIN_STEPS)
            return
        yield from islice(space.all(since, BRANCHES_PER_STATE * (limit + count)), limit)
        if space.complete:
            return
        if self._leaves_out(point):
            return
        parts = len(space.parts)
        most = min(limit + REPRESENTATIVES_PER_PART * parts, left // 2)
        for survivors in islice(space.representative(), most):
            if space.steps > MOST_STEPS_OF_POINT:
                break
            yield space.state_of(survivors)
        source = SeededChoices(self._limits.seed)
        everything = (1 << parts) - 1
        samples = min(self._limits.samples, max(self._states_left(point), 1))
        masks = (source.integer("survivors", 0, everything) for _ in range(samples))
        for survivors in space.sampled(masks):
            yield space.state_of(survivors)

    def _kills_during(
        self, unsynced: Unsynced, operation: Operation, point: _Point
    ) -> Iterator[CrashImage]:
        """Yield the kills that interrupt a long write between two of its pages."""
        if not isinstance(operation, Write):
            return
        prefixes = page_prefixes(operation, unsynced.model)
        if len(prefixes) > MOST_PREFIXES:
            self.exhaustive = False
            prefixes = prefixes[:: len(prefixes) // MOST_PREFIXES]
        partial = PartialWrite(operation, point.number, unsynced, point.cache)
        for kept in partial.prefixes(prefixes):
            beneath = partial.unsynced if self._carries(unsynced) else unsynced
            image, key = self._killed(beneath, partial.cache, point)
            crash = CrashPoint(point.number, Phase.DURING, CrashKind.KILL, kept=kept)
            yield point.crash(image, key, crash)

    def _carries(self, unsynced: Unsynced) -> bool:
        """Return whether the pieces that a kill leaves unsynced may make a difference.

        They do at a second crash, or once the check drops pages that a failed barrier has lost.
        """
        return bool(self._limits.nested or unsynced.lost)

    def _killed(self, unsynced: Unsynced, cache: PageCache, point: _Point) -> tuple[Image, Key]:
        if not self._carries(unsynced):
            return Image.of_platter(cache.inodes, point.next_inode), (cache.key, ())
        carried = unsynced.carried_over(point.number)
        image = Image(unsynced.platter, carried, cache.inodes, point.next_inode)
        # Two kills may leave the same page cache and different unsynced operations: a file
        # that was changed and changed back.
        return image, (cache.key, (unsynced.key, carried))


def _thinned(space: StateSpace, parts: Sequence[int], count: int) -> Iterator[State]:
    """Yield some states, spread evenly over the parts, which are sets of pieces.

    ``count`` and one lose everything behind a part, from nothing to all; as many as ``count`` lose
    one part, the last one first.
    """
    prefixes = [0, *accumulate(parts, or_)]
    steps = [len(parts) * step // count for step in range(count + 1)]
    kept = [prefixes[step] for step in reversed(steps)]
    if parts:
        kept += [prefixes[-1] & ~parts[-1 - step] for step in steps[:-1]]
    for pieces in kept:
        yield space.state_of(space.largest_within(pieces))
