"""The observation tree of a check: its questions, with the answers that led to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from oracles.violation import Violation
from sim.disk.cache.operation import Operation
from sim.disk.crash.undecided.question import Answer, Question


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a check: what it refused, or None.

    Two ends are equal if they violate the same property, whatever evidence they show.
    """

    violation: Violation | None = field(compare=False)
    property_name: str | None = None

    @classmethod
    def of(cls, violation: Violation | None) -> Outcome:
        """Return the end of a check that raised this violation, or nothing."""
        return cls(violation, None if violation is None else violation.property_name)


@dataclass(slots=True, eq=False)
class Node:
    """What a check does next, after certain answers: a question, or its end; neither is known yet.

    ``operations`` are those that it does before, since the last answer. ``before`` is the node
    of that answer's question.
    """

    before: Node | None = None
    answer: Answer = 0
    question: Question | None = None
    outcome: Outcome | None = None
    operations: Sequence[Operation] = ()
    after: dict[Answer, Node] = field(default_factory=dict)

    @property
    def is_known(self) -> bool:
        return self.question is not None or self.outcome is not None

    def child(self, answer: Answer) -> Node:
        """Return the node that an answer leads to."""
        found = self.after.get(answer)
        if found is None:
            found = self.after[answer] = Node(self, answer)
        return found

    def path(self) -> list[Node]:
        """Return the nodes from the root to this one."""
        found: list[Node] = []
        node: Node | None = self
        while node is not None:
            found.append(node)
            node = node.before
        return found[::-1]


def operations_to(node: Node) -> list[Operation]:
    """Return the operations of a check up to a node, those of the node included."""
    return [operation for each in node.path() for operation in each.operations]
