"""The trees of recovery units: each decides what one function reads, for all checks that call it.

States with the same result are one answer of the check that called it. So the states of several
units add up, where those of their results multiply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from powercut.explorer.lazy.boot import Boot
from powercut.explorer.lazy.budget import Budget
from powercut.explorer.lazy.descent import Chooser, Descent, plainest, unasked
from powercut.explorer.lazy.footprint import Place, are_disjoint, read
from powercut.explorer.lazy.tree import Divide, Ending, Node, Step
from powercut.explorer.lazy.unit_call import WITHIN, UnitCall
from sim.disk.cache.inode import ROOT
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.undecided.box import Box, split
from sim.disk.crash.undecided.question import Answer, Question

Unit: TypeAlias = tuple[str, tuple[Any, ...]]
UnitTrees: TypeAlias = dict[Unit, Node]


class Trees(NamedTuple):
    """The observation trees of one check, by their number, and those of its recovery units."""

    of_check: dict[int, Node]
    of_units: UnitTrees


class Units:
    """Answers the calls of units, by executing them on an undecided disk.

    ``trees`` grow. ``reached`` has the ends of all executions, and ``within`` the functions
    that a check has executed within itself, because they are not independent of it.
    """

    def __init__(self, trees: UnitTrees, model: PersistenceModel, budget: Budget) -> None:
        self.reached: set[Ending] = set()
        self.within: dict[str, None] = {}
        self._trees = trees
        self._model = model
        self._budget = budget
        self._read: dict[Ending, frozenset[Place]] = {}
        self._first: dict[Unit, tuple[UnitCall, list[Step], Ending]] = {}

    def split(self, box: Box, call: UnitCall, divide: Divide) -> Iterator[tuple[Answer, Box]]:
        """Yield the parts of a box, each with the answer that its survivor sets give."""
        found: dict[Answer, list[Box]] = {}
        for answer, part in self._parts(box, call, divide):
            found.setdefault(answer, []).append(part)
        for answer, parts in found.items():
            for part in box.together(parts):
                yield answer, part

    def _parts(self, box: Box, call: UnitCall, divide: Divide) -> Iterator[tuple[Answer, Box]]:
        """Yield the part of each path of the unit."""
        unit = call.function, call.arguments
        root = self._trees.setdefault(unit, Node())
        stack: list[tuple[Node, Sequence[Box]]] = [(root, [box._replace(numbers=(ROOT,))])]
        while stack:
            node, boxes = stack.pop()
            if node.end is None:
                self._execute(node, call, boxes[0])
            boxes, parts = node.descend(boxes, divide)
            end = node.end
            if parts is None:
                assert isinstance(end, Ending)
                if end not in self.reached:
                    self.reached.add(end)
                    self._read[end] = _read(node.path(), node.steps)
                if unit not in self._first:
                    self._first[unit] = call, [*node.path(), *node.steps], end
                for part in boxes:
                    answer = self._answer(end, self._read[end], call, box, part)
                    yield answer, part._replace(numbers=box.numbers)
            else:
                stack += [(node.child(each), part) for each, part in parts.items()][::-1]

    def _execute(self, node: Node, call: UnitCall, box: Box) -> None:
        self._budget.execute()
        path = node.path()
        steps, end = self._trace(call, path, plainest(box, split))
        node.grow(steps, end)

    def plainest(self, box: Box, call: UnitCall) -> tuple[Answer, Box]:
        """Return one answer, without the tree, and the part of a box that gives it."""
        left = box._replace(numbers=(ROOT,))
        steps: list[Step] = []

        def choose(question: Question) -> Answer:
            nonlocal left
            answer, left = next(split(left, question))
            steps.append(Step(question, answer))
            return answer

        _, end = self._trace(call, (), choose)
        answer = self._answer(end, _read(steps), call, box, left)
        return answer, left._replace(numbers=box.numbers)

    def _trace(
        self, call: UnitCall, path: Sequence[Step], choose: Chooser, ending: Ending | None = None
    ) -> tuple[list[Step], Ending]:
        descent = Descent(path, choose, ending)
        disk = Boot(descent, self._model, is_unit=True).disk
        result = call.execute(disk)
        if descent.failure is not None:
            raise descent.failure
        return descent.steps, descent.finish(Ending(result=result), ())

    def _answer(
        self, end: Ending, places: frozenset[Place], call: UnitCall, box: Box, part: Box
    ) -> bytes:
        is_independent = are_disjoint(call.written, box.numbers, places, part.numbers)
        if end.result != WITHIN and is_independent:
            return end.result
        self.within[call.function] = None
        return WITHIN

    def repeat(self) -> None:
        """Execute the first path of each tree again: a unit with state takes another one."""
        for call, path, ending in self._first.values():
            self._budget.execute()
            self._trace(call, path, unasked, ending)


def _read(*parts: Sequence[Step]) -> frozenset[Place]:
    """Return the places that the steps of a unit depend on."""
    answers: list[tuple[Question, Answer]] = []
    for steps in parts:
        for question, answer, _ in steps:
            assert isinstance(question, Question), question
            answers.append((question, answer))
    return read(answers)
