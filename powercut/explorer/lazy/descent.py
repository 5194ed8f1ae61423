"""Descents: one execution of a check, which adds a path to its observation tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn, Protocol

from oracles.violation import Violation
from powercut.explorer.lazy.budget import GaveUp
from powercut.explorer.lazy.tree import Node, Outcome
from sim.disk.cache.operation import Operation
from sim.disk.crash.undecided.box import Box
from sim.disk.crash.undecided.question import Answer, Question
from sim.errors import HarnessError, NeedsWholeImage


class Divider(Protocol):
    """Divides boxes by the answers to the question of a node, the plainest answer first."""

    def divided(self, node: Node, boxes: Sequence[Box]) -> Mapping[Answer, Sequence[Box]]:
        """Return the answers that the boxes give, each with its part of them."""
        ...


class Descent:
    """Answers one execution: as on the path to ``node``, then the plainest way for ``boxes``."""

    def __init__(self, divider: Divider, node: Node, boxes: Sequence[Box]) -> None:
        self.failure: BaseException | None = None
        self._divider = divider
        self._path = node.path()
        self._boxes = boxes
        self._node = self._path[0]
        self._step = 0
        self._done = 0

    def fail(self, failure: BaseException) -> NoReturn:
        """Give the execution up, and raise ``failure``."""
        self.failure = failure
        raise failure

    def answer(self, question: Question, operations: Sequence[Operation]) -> Answer:
        """Return the answer to the next question, and go on to the node behind it."""
        if self.failure is not None:
            raise self.failure
        node = self._node
        if not node.is_known:
            self._note(operations)
            node.question = question
        elif node.question != question:
            self._differ(str(question))
        self._done = len(operations)
        self._step += 1
        if self._step < len(self._path):
            self._node = self._path[self._step]
            return self._node.answer
        try:
            parts = self._divider.divided(node, self._boxes)
        except (GaveUp, NeedsWholeImage) as failure:
            self.fail(failure)
        found, self._boxes = next(iter(parts.items()))
        self._node = node.child(found)
        return found

    def finish(self, violation: Violation | None, operations: Sequence[Operation]) -> None:
        """End the execution."""
        node = self._node
        if node.question is not None or self._step < len(self._path) - 1:
            self._differ("nothing more")
        if not node.is_known:
            self._note(operations)
            node.outcome = Outcome.of(violation)
        elif node.outcome != Outcome.of(violation):
            self._differ(f"nothing more, and ended with {violation or 'no violation'}")

    def _note(self, operations: Sequence[Operation]) -> None:
        self._node.operations = tuple(operations[self._done :])

    def _differ(self, now: str) -> NoReturn:
        node = self._node
        first = str(node.question)
        if node.outcome is not None:
            first = f"nothing more, and ended with {node.outcome.violation or 'no violation'}"
        self.fail(
            HarnessError(
                f"the check is not deterministic: after the same {self._step} answers of the disk "
                f"it asked for {first}, and now for {now}; it must depend on nothing but the disk "
                "and the values that were acknowledged, and keep nothing between two calls"
            )
        )
