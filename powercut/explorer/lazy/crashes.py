"""Crashes of a recovery: the boxes that they leave, between two answers of the disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from faults.crash_counter import page_prefixes
from faults.crash_point import CrashKind, CrashPoint, Phase
from powercut.explorer.lazy.budget import Budget
from sim.disk.cache.operation import Create, Operation, Write
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.undecided.after_crash import after_kill, after_power_cut, renumbered
from sim.disk.crash.undecided.box import Box
from sim.disk.crash.undecided.layer import Layer
from sim.disk.crash.undecided.question import FIRST_NEW
from sim.disk.crash.undecided.unsynced_above import recoveries


class Crashes:
    """Crashes the recovery up to ``nested`` times, with at most ``tears`` torn pieces each."""

    def __init__(self, model: PersistenceModel, nested: int, tears: int, budget: Budget) -> None:
        self.nested = nested
        self._model = model
        self._tears = tears
        self._budget = budget

    def during(
        self,
        operations: Sequence[Operation],
        first: int,
        boxes: Sequence[Box],
        last: CrashPoint,
    ) -> Iterator[tuple[CrashPoint, list[Box]]]:
        """Yield the crashes at these operations from index ``first`` on, with their boxes.

        ``last`` is the crash before this boot. A power cut before the first operation leaves what
        one at that crash would have left, unless a kill has made a new piece of a part of a write.
        """
        if not first and last.phase is Phase.DURING and not self._model.cuts_pages:
            cut, _ = self._boxes_at(boxes, ())
            yield CrashPoint(1, Phase.BEFORE, CrashKind.POWER_CUT), cut
        for number in range(first + 1, len(operations) + 1):
            done = operations[:number]
            if isinstance(done[-1], Write):
                yield from self._kills_during(boxes, done)
            cut, killed = self._boxes_at(boxes, done)
            for kind, found in ((CrashKind.POWER_CUT, cut), (CrashKind.KILL, killed)):
                if found:
                    yield CrashPoint(number, Phase.AFTER, kind), found

    def _kills_during(
        self, boxes: Sequence[Box], operations: Sequence[Operation]
    ) -> Iterator[tuple[CrashPoint, list[Box]]]:
        """Yield the kills that interrupt a long write, the last one, between two of its pages."""
        write = operations[-1]
        assert isinstance(write, Write), write
        for kept in page_prefixes(write, self._model):
            part = write._replace(data=write.data[:kept])
            _, killed = self._boxes_at(boxes, [*operations[:-1], part])
            yield CrashPoint(len(operations), Phase.DURING, CrashKind.KILL, kept=kept), killed

    def _boxes_at(
        self, boxes: Sequence[Box], operations: Sequence[Operation]
    ) -> tuple[list[Box], list[Box]]:
        """Return the boxes of a power cut and of a kill after these operations."""
        cut: list[Box] = []
        killed: list[Box] = []
        created = sum(isinstance(each, Create) for each in operations)
        for box in boxes:
            named = renumbered(operations, box, FIRST_NEW)
            next_inode = box.next_inode + created
            for lifetime in recoveries(box, named, self._model):
                self._budget.divide()
                layer = Layer(lifetime.durable, lifetime.unsynced.ordering)
                killed.append(after_kill(lifetime, named, next_inode))
                for part in after_power_cut(
                    lifetime.box, layer, lifetime.since, self._tears, next_inode
                ):
                    self._budget.divide()
                    cut.append(part)
        return cut, killed
