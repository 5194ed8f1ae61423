"""The observation tree of a check: its questions, with the answers that led to each.

Questions that all boxes have answered in the same way so far are steps of one node, so a tree
has few more nodes than leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from oracles.violation import Violation
from sim.disk.cache.operation import Operation
from sim.disk.crash.undecided.question import Answer, Question


class Step(NamedTuple):
    """A question with its answer, and the operations that the check does before it."""

    question: Question
    answer: Answer
    operations: Sequence[Operation] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Ending:
    """The end of a check, after certain answers; two of them are never equal.

    It has what the check refused, or None, and ``result``, the pickled result of the first phase
    of a check in two phases. ``operations`` are those since the last answer.
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

    question: Question
    operations: Sequence[Operation]
    after: dict[Answer, Node] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Node:
    """What a check does after certain answers: some steps, then a branch or its end.

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

    def split(self, number: int) -> None:
        """Make a branch of step ``number``; what was behind it is behind its answer then."""
        step = self.steps[number]
        below = Node(self, step.answer, self.steps[number + 1 :], self.end)
        if isinstance(below.end, Branch):
            for node in below.end.after.values():
                node.before = below
        del self.steps[number:]
        self.end = Branch(step.question, step.operations, {step.answer: below})

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
