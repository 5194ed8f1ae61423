"""Crash sites: the moments of a recorded workload at which a crash may leave something new."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from faults.crash_counter import page_prefixes
from faults.crash_point import CrashKind, CrashPoint, Phase
from oracles.history import History
from powercut.explorer.crash_state import at_start
from powercut.explorer.page_cache import PageCache, changes_without_pieces
from powercut.explorer.partial_write import PartialWrite
from sim.disk.cache.operation import Operation, Write
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.undecided.after_crash import after_power_cut
from sim.disk.crash.undecided.box import Box, KilledCache
from sim.disk.crash.undecided.layer import Layer
from sim.disk.crash.unsynced import Unsynced


class CrashSite(NamedTuple):
    """One crash: the boxes of the disks that it may leave, and its crash point without survivors.

    ``entries`` is the number of entries that the history has at it. ``layer`` has the pieces of
    a power cut, and is None for a kill.
    """

    point: CrashPoint
    boxes: list[Box]
    entries: int
    layer: Layer | None


def crash_sites(
    journal: Journal, history: History, model: PersistenceModel, tears: int, *, nested: bool
) -> Iterator[CrashSite]:
    """Yield every crash of a workload at which the disk may be another than at an earlier one.

    ``tears`` is the largest number of torn pieces of one power cut. ``nested`` is whether the
    recovery is crashed as well.
    """
    unsynced = at_start(journal, model)
    cache = PageCache(journal.image.cached)
    reached = 0
    for number in range(len(journal) + 1):
        if number:
            operation = journal[number - 1]
            since = len(unsynced.micros)
            moment = _Moment(number, reached, journal.next_inode, tears, nested)
            yield from moment.kills_during(operation, unsynced, cache)
            unsynced.advance(operation, number)
            cache.advance(operation, unsynced)
            if unsynced.allows_more:
                since = 0
            has_pieces = since < len(unsynced.micros)
            if has_pieces or changes_without_pieces(operation, unsynced, nested=nested):
                yield from moment.crashes(unsynced, cache, since)
        entries = history.entries_by(number, returned=True)
        if entries != reached or not number:
            moment = _Moment(number, entries, journal.next_inode, tears, nested)
            yield from moment.crashes(unsynced, cache, 0)
            reached = entries


class _Moment(NamedTuple):
    """The moment after operation ``number``, with the number of entries in the history.

    ``nested`` is whether the recovery is crashed as well.
    """

    number: int
    entries: int
    next_inode: int
    tears: int
    nested: bool

    def crashes(self, unsynced: Unsynced, cache: PageCache, since: int) -> Iterator[CrashSite]:
        """Yield the kill and the power cut."""
        phase = Phase.AFTER if self.number else Phase.BEFORE
        operation = max(self.number, 1)
        yield self._killed(CrashPoint(operation, phase, CrashKind.KILL), unsynced, cache)
        layer = Layer((), unsynced.ordering)
        box = Box(unsynced.platter, (), (), self.next_inode)
        boxes = list(after_power_cut(box, layer, since, self.tears, self.next_inode))
        point = CrashPoint(operation, phase, CrashKind.POWER_CUT)
        yield CrashSite(point, boxes, self.entries, layer)

    def kills_during(
        self, operation: Operation, unsynced: Unsynced, cache: PageCache
    ) -> Iterator[CrashSite]:
        """Yield the kills that interrupt a long write between two of its pages."""
        if not isinstance(operation, Write):
            return
        partial = PartialWrite(operation, self.number, unsynced, cache)
        for kept in partial.prefixes(page_prefixes(operation, unsynced.model)):
            point = CrashPoint(self.number, Phase.DURING, CrashKind.KILL, kept=kept)
            # The pieces are cut only if they are needed.
            before = partial.unsynced if self._carries(unsynced) else unsynced
            yield self._killed(point, before, partial.cache)

    def _carries(self, unsynced: Unsynced) -> bool:
        """Return whether the pieces that a kill leaves unsynced may make a difference."""
        return bool(self.nested or unsynced.lost)

    def _killed(self, point: CrashPoint, unsynced: Unsynced, cache: PageCache) -> CrashSite:
        box = Box(cache.inodes, (), (), self.next_inode)
        if self._carries(unsynced):
            page = KilledCache(cache.inodes, lost=unsynced.lost.inodes)
            carried = unsynced.carried_over(self.number)
            box = box._replace(base=unsynced.platter, cache=page, carried=carried)
        return CrashSite(point, [box], self.entries, None)
