"""The walk: boxes of crashes go down an observation tree, which grows where it is not known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from faults.crash_counter import page_prefixes
from faults.crash_point import CrashKind, CrashPoint, Phase
from oracles.violation import Violation
from powercut.explorer.lazy.boot import FIRST_NEW, Boot
from powercut.explorer.lazy.budget import Budget
from powercut.explorer.lazy.descent import Descent
from powercut.explorer.lazy.tree import Node, Outcome, operations_to
from sim.disk.cache.operation import Create, Operation, Write
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.undecided.box import Box, split
from sim.disk.crash.undecided.cuts import after_kill, after_power_cut, renumbered
from sim.disk.crash.undecided.layer import Layer
from sim.disk.crash.undecided.question import Answer
from sim.disk.crash.undecided.unsynced_above import recoveries
from sim.disk.disk import Disk
from sim.errors import NeedsWholeImage


class Leaf(NamedTuple):
    """The boxes of one chain of crashes that end at the same outcome.

    ``crashes`` are their crash points; the survivors of power cuts are those of each box.
    """

    node: Node
    outcome: Outcome
    boxes: Sequence[Box]
    crashes: tuple[CrashPoint, ...]


class _Visit(NamedTuple):
    node: Node
    boxes: Sequence[Box]
    crashes: tuple[CrashPoint, ...]


class Walk:
    """Takes boxes down the tree of one check.

    ``check`` runs the check once on a disk. The recovery is crashed as well, ``nested`` times.
    ``tears`` is the largest number of torn pieces of one power cut.
    """

    def __init__(
        self,
        root: Node,
        check: Callable[[Disk], Violation | None],
        model: PersistenceModel,
        nested: int,
        tears: int,
        budget: Budget,
    ) -> None:
        self._root = root
        self._check = check
        self._model = model
        self._nested = nested
        self._tears = tears
        self._budget = budget
        self._parts: dict[Node, Mapping[Answer, Sequence[Box]]] = {}
        self._first: tuple[Node, Sequence[Box]] | None = None

    def leaves(self, boxes: Sequence[Box], crash: CrashPoint) -> Iterator[Leaf]:
        """Yield the ends of the check for the boxes of one crash, and of all crashes after it."""
        stack = [_Visit(self._root, boxes, (crash,))]
        while stack:
            node, boxes, crashes = stack.pop()
            if not node.is_known:
                self._execute(node, boxes)
            if len(crashes) <= self._nested and node.operations:
                stack.extend(self._crashes_at(node, boxes, crashes))
            if node.outcome is not None:
                self._first = self._first or (node, boxes)
                yield Leaf(node, node.outcome, boxes, crashes)
                continue
            parts = self._parts.pop(node, None) or self.divided(node, boxes)
            visits = [_Visit(node.child(each), part, crashes) for each, part in parts.items()]
            stack += visits[::-1]

    def repeat(self) -> None:
        """Execute the first path again: a check that keeps state takes another one."""
        if self._first is not None:
            self._execute(*self._first)

    def divided(self, node: Node, boxes: Sequence[Box]) -> Mapping[Answer, Sequence[Box]]:
        """Return the answers to the question of a node, each with its part of the boxes."""
        assert node.question is not None
        found: dict[Answer, list[Box]] = {}
        for box in boxes:
            try:
                for answer, part in split(box, node.question):
                    self._budget.divide()
                    found.setdefault(answer, []).append(part)
            except RecursionError:
                raise NeedsWholeImage("a place that was changed too often") from None
        return found

    def _execute(self, node: Node, boxes: Sequence[Box]) -> None:
        """Run the check from the start along the path to ``node``, and from there to its end."""
        self._budget.execute()
        descent = Descent(self, node, boxes)
        disk = Boot(descent, self._model).disk
        violation = self._check(disk)
        if descent.failure is not None:
            # The check has swallowed it.
            raise descent.failure
        descent.finish(violation, disk.journal.operations)

    # -- crashes of the recovery ---------------------------------------------------------------

    def _crashes_at(
        self, node: Node, boxes: Sequence[Box], crashes: tuple[CrashPoint, ...]
    ) -> Iterator[_Visit]:
        """Yield the crashes at the operations of a node, for the boxes that reach it."""
        operations = operations_to(node)
        first = len(operations) - len(node.operations)
        for number in range(first + 1, len(operations) + 1):
            done = operations[:number]
            if isinstance(done[-1], Write):
                yield from self._kills_during(boxes, done, crashes)
            cut, killed = self._boxes_at(boxes, done)
            for kind, found in ((CrashKind.POWER_CUT, cut), (CrashKind.KILL, killed)):
                if found:
                    point = CrashPoint(number, Phase.AFTER, kind)
                    yield _Visit(self._root, found, (*crashes, point))

    def _kills_during(
        self, boxes: Sequence[Box], operations: Sequence[Operation], crashes: tuple[CrashPoint, ...]
    ) -> Iterator[_Visit]:
        """Yield the kills that interrupt a long write, the last one, between two of its pages."""
        write = operations[-1]
        assert isinstance(write, Write), write
        for kept in page_prefixes(write):
            part = write._replace(data=write.data[:kept])
            _, killed = self._boxes_at(boxes, [*operations[:-1], part])
            point = CrashPoint(len(operations), Phase.DURING, CrashKind.KILL, kept=kept)
            yield _Visit(self._root, killed, (*crashes, point))

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
