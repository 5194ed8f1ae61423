"""Budgets: the work after which a lazy exploration is given up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

MOST_BYTES: Final = 1 << 29
"""The bytes of answers and results that the trees of one exploration may keep."""


class GaveUp(BaseException):
    """The exploration needs more boxes, executions or memory than its budget has.

    A ``BaseException``, because it is raised inside a check, which may catch every other.
    """


class Budget:
    """Bounds an exploration, by counts, so that it ends in the same place every time.

    A question has at most as many answers as there are executions, because each needs one.
    ``boxes`` are the parts of boxes that are left.
    ``tick`` is called now and then outside of the check; it may raise an exception.
    """

    def __init__(
        self, executions: int, boxes: int, tick: Callable[[], None] = lambda: None
    ) -> None:
        self.tick = tick
        self.most_answers = executions
        self._executions = executions
        self._bytes = MOST_BYTES
        self.boxes = boxes

    def execute(self) -> None:
        """Count an execution of the check; raise ``GaveUp`` if there were too many."""
        self._executions -= 1
        if self._executions < 0:
            raise GaveUp("too many executions")

    def require(self, executions: int) -> None:
        """Raise ``GaveUp`` if fewer executions are left than these, which are needed."""
        if executions > self._executions:
            raise GaveUp("too many executions")

    def divide(self, parts: int = 1) -> None:
        """Count parts of boxes; raise ``GaveUp`` if there were too many."""
        self.boxes -= parts
        if self.boxes < 0:
            raise GaveUp("too many boxes")

    def keep(self, content: bytes) -> None:
        """Count an answer or a result; raise ``GaveUp`` if they have too many bytes in all."""
        self._bytes -= len(content)
        if self._bytes < 0:
            raise GaveUp("too many bytes")
