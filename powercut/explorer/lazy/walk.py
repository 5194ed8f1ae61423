"""The walk: boxes of crashes go down an observation tree, which grows where it is not known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final, NamedTuple

from faults.crash_point import CrashPoint
from powercut.explorer.forks import in_forks
from powercut.explorer.lazy.boot import Boot
from powercut.explorer.lazy.budget import Budget, GaveUp
from powercut.explorer.lazy.crash_sites import CrashSite
from powercut.explorer.lazy.crashes import Crashes
from powercut.explorer.lazy.descent import Chooser, Descent, plainest, unasked
from powercut.explorer.lazy.phases import PhasedCheck
from powercut.explorer.lazy.tree import Ending, Node, Parts, Step
from powercut.explorer.lazy.unit_call import Asked, UnitCall
from powercut.explorer.lazy.units import Trees, Units
from sim.disk.cache.operation import Operation
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.undecided.box import Box, split
from sim.disk.crash.undecided.dropped_pages import split_by_pages
from sim.disk.crash.undecided.question import Answer, DroppedPages
from sim.errors import NeedsWholeImage

_TOGETHER: Final = 128
"""The executions that are begun before a result is used: on one core too, for the same order."""

Trace = tuple[list[Step], Ending]


class Leaf(NamedTuple):
    """The boxes of one chain of crashes that end at the same outcome.

    ``crashes`` are their crash points; the survivors of power cuts are those of each box.
    """

    ending: Ending
    site: CrashSite
    boxes: Sequence[Box]
    crashes: tuple[CrashPoint, ...]


class _Visit(NamedTuple):
    node: Node
    site: CrashSite
    boxes: Sequence[Box]
    crashes: tuple[CrashPoint, ...]


class Walk:
    """Takes boxes down the trees of one check, which it executes in ``processes`` processes.

    ``trees`` grow. The recovery is crashed as well, by ``crashes``.
    """

    def __init__(
        self,
        check: PhasedCheck,
        trees: Trees,
        model: PersistenceModel,
        crashes: Crashes,
        budget: Budget,
        processes: int = 1,
    ) -> None:
        self._check = check
        self.units = Units(trees.of_units, model, budget)
        self._trees = trees.of_check
        self._model = model
        self._crashes = crashes
        self._budget = budget
        self._processes = processes
        self._questions: dict[Asked, Asked] = {}
        self._bytes: dict[bytes, bytes] = {}
        self._first: dict[int, tuple[list[Step], Ending, int]] = {}

    def leaves(self, sites: Iterator[CrashSite]) -> Iterator[Leaf]:
        """Yield the ends of the check for the boxes of each crash, and of all crashes after it."""
        stack: list[_Visit] = []
        waiting: dict[Node, list[_Visit]] = {}
        while True:
            if not stack and len(waiting) < _TOGETHER:
                site = next(sites, None)
                if site is not None:
                    stack.append(_Visit(self.root(site), site, site.boxes, (site.point,)))
            if not stack:
                if not waiting:
                    return
                self._execute(waiting, stack)
                stack += [each for visits in reversed(waiting.values()) for each in visits[::-1]]
                waiting = {}
            visit = stack.pop()
            if visit.node.end is not None:
                yield from self._descend(visit, stack)
                continue
            waiting.setdefault(visit.node, []).append(visit)
            if len(waiting) == _TOGETHER:
                self._execute(waiting, stack)
                stack += [each for visits in reversed(waiting.values()) for each in visits[::-1]]
                waiting = {}

    def root(self, site: CrashSite) -> Node:
        """Return the root of the tree of a crash."""
        return self._trees.setdefault(self._check.tree(site.entries), Node())

    def _descend(self, visit: _Visit, stack: list[_Visit]) -> Iterator[Leaf]:
        """Take a visit to the next branch or end; what follows goes on the stack."""
        node, site, boxes, crashes = visit

        def reach(number: int, operations: Sequence[Operation], boxes: Sequence[Box]) -> None:
            if operations:
                self._crash(visit, number, operations, boxes, stack)

        def divide(question: Asked, boxes: Sequence[Box]) -> Parts:
            return self._divided(question, boxes, self._budget.tick)

        boxes, parts = node.descend(boxes, divide, reach)
        if parts is not None:
            stack += [
                _Visit(node.child(answer), site, part, crashes) for answer, part in parts.items()
            ][::-1]
            return
        end = node.end
        assert isinstance(end, Ending)
        tree = self._check.tree(site.entries)
        if tree not in self._first:
            self._first[tree] = [*node.path(), *node.steps], end, site.entries
        yield Leaf(end, site, boxes, crashes)

    def _crash(
        self,
        visit: _Visit,
        number: int,
        operations: Sequence[Operation],
        boxes: Sequence[Box],
        stack: list[_Visit],
    ) -> None:
        """Add the crashes at the operations before step ``number`` of a node."""
        node, site, _, crashes = visit
        if len(crashes) > self._crashes.nested:
            return
        steps = [*node.path(), *node.steps[:number]]
        done = [operation for step in steps for operation in step.operations]
        during = self._crashes.during([*done, *operations], len(done), boxes, crashes[-1])
        for point, found in during:
            self._budget.tick()
            stack.append(_Visit(self.root(site), site, found, (*crashes, point)))

    def split(self, box: Box, question: Asked) -> Iterator[tuple[Answer, Box]]:
        """Yield the parts of a box, each with the answer that its survivor sets give."""
        if isinstance(question, UnitCall):
            return self.units.split(box, question, self._divided)
        if isinstance(question, DroppedPages):
            return split_by_pages(box, question, self._model)
        return split(box, question)

    def tick(self) -> None:
        """Call the tick of the budget, outside of the check."""
        self._budget.tick()

    def divided(
        self,
        question: Asked,
        boxes: Sequence[Box],
        most: int,
        tick: Callable[[], None] = lambda: None,
    ) -> Parts:
        """Return the answers to a question, each with its part of the boxes, the plainest first.

        ``tick`` is called for each part; inside the check, the budget's must not be. Raises
        ``GaveUp`` if there are more than ``most`` answers, or more parts than the budget has left.
        """
        found: dict[Answer, list[Box]] = {}
        left = self._budget.boxes
        for box in boxes:
            try:
                for answer, part in self.split(box, question):
                    tick()
                    found.setdefault(answer, []).append(part)
                    if len(found) > most:
                        raise GaveUp("too many answers")
                    left -= 1
                    if left < 0:
                        raise GaveUp("too many boxes")
            except RecursionError:
                raise NeedsWholeImage("a place that was changed too often") from None
        return found

    def _divided(
        self, question: Asked, boxes: Sequence[Box], tick: Callable[[], None] = lambda: None
    ) -> Parts:
        parts = self.divided(question, boxes, self._budget.most_answers, tick)
        self._budget.divide(sum(len(part) for part in parts.values()))
        return parts

    def _plainest(self, box: Box) -> Chooser:
        """Return a chooser that executes units without their trees, which another process has."""

        def first(box: Box, question: Asked) -> Iterator[tuple[Answer, Box]]:
            if isinstance(question, UnitCall):
                return iter([self.units.plainest(box, question)])
            return self.split(box, question)

        return plainest(box, first)

    # -- executions ----------------------------------------------------------------------------

    def _execute(self, waiting: Mapping[Node, Sequence[_Visit]], stack: Sequence[_Visit]) -> None:
        """Run the check to its end for the first visit of each of these unknown nodes.

        Each unknown node of the ``stack`` will need an execution as well.
        """
        others = {visit.node for visit in stack if visit.node.end is None}
        self._budget.require(len(others | waiting.keys()))
        for _ in waiting:
            self._budget.execute()

        def trace(visit: _Visit) -> Trace | NeedsWholeImage:
            try:
                return self.trace(
                    visit.node.path(), self._plainest(visit.boxes[0]), visit.site.entries
                )
            except NeedsWholeImage as failure:
                return failure

        firsts = [visits[0] for visits in waiting.values()]
        traces: dict[int, Trace] = {}
        with closing(in_forks(trace, firsts, self._processes, self._budget.tick)) as results:
            for place, found in results:
                if isinstance(found, NeedsWholeImage):
                    raise found
                traces[place] = found
        for place, visit in enumerate(firsts):
            self.grow(visit.node, traces[place])

    def trace(
        self, path: Sequence[Step], choose: Chooser, entries: int, ending: Ending | None = None
    ) -> Trace:
        """Run the check from the start along a path, and from there as ``choose`` answers."""
        keeps = self._crashes.nested > 0
        descent = Descent(path, choose, ending, keeps_operations=keeps)
        disk = Boot(descent, self._model).disk
        found = self._check.execute(disk, entries)
        if descent.failure is not None:
            # The check has swallowed it.
            raise descent.failure
        return descent.steps, descent.finish(found, disk.journal.operations)

    def grow(self, node: Node, trace: Trace) -> None:
        """Add the steps and the end that an execution had behind a node."""
        steps, end = trace
        node.grow(
            [self._shared(step) for step in steps],
            replace(end, result=self._shared_bytes(end.result)),
        )

    def _shared(self, step: Step) -> Step:
        """Return a step that shares its question and its bytes with equal ones."""
        question, answer, operations = step
        question = self._questions.setdefault(question, question)
        if isinstance(answer, bytes):
            answer = self._shared_bytes(answer)
        return Step(question, answer, operations)

    def _shared_bytes(self, found: bytes) -> bytes:
        if found not in self._bytes:
            self._budget.keep(found)
        return self._bytes.setdefault(found, found)

    def repeat(self) -> None:
        """Execute the first path of each tree again: a check with state takes another one."""
        for path, ending, entries in self._first.values():
            self._budget.tick()
            self._budget.execute()
            self.trace(path, unasked, entries, ending)
        self.units.repeat()
