"""The observation tree of a check: its questions, with the answers that led to each.

Questions that all boxes have answered in the same way so far are steps of one node, so a tree
has few more nodes than leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from oracles.violation import Violation
from powercut.explorer.lazy.unit_call import Asked
from sim.disk.cache.operation import Operation
from sim.disk.crash.undecided.box import Box
from sim.disk.crash.undecided.question import Answer

Parts: TypeAlias = Mapping[Answer, Sequence[Box]]
"""The answers to a question, each with its part of some boxes, the plainest first."""

Divide: TypeAlias = Callable[[Asked, Sequence[Box]], Parts]
Reach: TypeAlias = Callable[[int, Sequence[Operation], Sequence[Box]], None]


def _reach_nothing(_number: int, _operations: Sequence[Operation], _boxes: Sequence[Box]) -> None:
    """Ignore operations."""


class Step(NamedTuple):
    """A question with its answer, and the operations that the check does before it."""

    question: Asked
    answer: Answer
    operations: Sequence[Operation] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Ending:
    """The end of a check, after certain answers; two of them are never equal.

    ``violation`` is that of the check, ``result`` the pickled result of the first phase of a
    check in two phases. ``operations`` are those since the last answer.
    """

    violation: Violation | None = None
    result: bytes = b""
    operations: Sequence[Operation] = ()

    @property
    def property_name(self) -> str | None:
        """The property that is violated, or None."""
        return None if self.violation is None else self.violation.property_name


@dataclass(slots=True, eq=False)
class Branch:
    """A question with several answers, and the nodes behind them."""

    question: Asked
    operations: Sequence[Operation]
    after: dict[Answer, Node] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Node:
    """The course of a check after certain answers: some steps, then a branch or its end.

    ``end`` is None as long as no execution has come here. ``before`` is the node of the branch
    with the last of these answers, which is ``answer``.
    """

    before: Node | None = None
    answer: Answer = 0
    steps: list[Step] = field(default_factory=list)
    end: Branch | Ending | None = None

    def child(self, answer: Answer) -> Node:
        """Return the node that an answer to the question of the branch leads to."""
        assert isinstance(self.end, Branch)
        found = self.end.after.get(answer)
        if found is None:
            found = self.end.after[answer] = Node(self, answer)
        return found

    def grow(self, steps: list[Step], end: Ending) -> None:
        """Add the steps and the end that an execution had behind this node."""
        assert self.end is None
        self.steps, self.end = steps, end

    def split(self, number: int) -> None:
        """Make a branch of step ``number``, and move everything behind it behind its answer."""
        step = self.steps[number]
        below = Node(self, step.answer, self.steps[number + 1 :], self.end)
        if isinstance(below.end, Branch):
            for node in below.end.after.values():
                node.before = below
        del self.steps[number:]
        self.end = Branch(step.question, step.operations, {step.answer: below})

    def descend(
        self, boxes: Sequence[Box], divide: Divide, reach: Reach = _reach_nothing
    ) -> tuple[Sequence[Box], Parts | None]:
        """Take boxes to the next branch or to the end of the check.

        Return the boxes there, and their parts behind the branch, or None at the end. A step
        that not all boxes answer in the same way becomes a branch. ``reach`` is called with the
        number of each step, the operations before it and the boxes there, also at the end.
        """
        for number, step in enumerate(self.steps):
            reach(number, step.operations, boxes)
            parts = divide(step.question, boxes)
            if [*parts] != [step.answer]:
                self.split(number)
                return boxes, parts
            boxes = parts[step.answer]
        end = self.end
        assert end is not None
        reach(len(self.steps), end.operations, boxes)
        return boxes, None if isinstance(end, Ending) else divide(end.question, boxes)

    def path(self) -> list[Step]:
        """Return all steps from the root to the beginning of this node."""
        parts: list[list[Step]] = []
        node = self
        while node.before is not None:
            above = node.before
            branch = above.end
            assert isinstance(branch, Branch)
            parts.append([*above.steps, Step(branch.question, node.answer, branch.operations)])
            node = above
        return [step for part in reversed(parts) for step in part]
