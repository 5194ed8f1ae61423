"""Descents: one execution of a check, answered along a known path and then by a chooser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TypeAlias

from powercut.explorer.lazy.budget import GaveUp
from powercut.explorer.lazy.tree import Ending, Step
from powercut.explorer.lazy.unit_call import Asked
from sim.disk.cache.operation import Operation
from sim.disk.crash.undecided.box import Box
from sim.disk.crash.undecided.question import Answer
from sim.errors import HarnessError, NeedsWholeImage

Chooser: TypeAlias = Callable[[Any], Answer]
"""Answers questions that were never asked after the answers before."""


def plainest(box: Box, split: Callable[[Box, Any], Iterator[tuple[Answer, Box]]]) -> Chooser:
    """Return a chooser that decides the disk of a box in the plainest way, which is the first."""

    def choose(question: Any) -> Answer:
        nonlocal box
        answer, box = next(split(box, question))
        return answer

    return choose


def unasked(question: object) -> NoReturn:
    """Answer nothing: all questions have been asked before."""
    raise AssertionError(question)


class Descent:
    """Answers one execution: as on ``path``, then by ``choose``, whose answers are in ``steps``.

    The check must end behind the path as in ``ending``, if that is given. Without
    ``keeps_operations`` the operations of the check are not kept.
    """

    def __init__(
        self,
        path: Sequence[Step],
        choose: Chooser,
        ending: Ending | None = None,
        *,
        keeps_operations: bool = False,
    ) -> None:
        self.failure: BaseException | None = None
        self.steps: list[Step] = []
        self._path = path
        self._choose = choose
        self._ending = ending
        self._keeps_operations = keeps_operations
        self._number = 0
        self._done = 0

    def fail(self, failure: BaseException) -> NoReturn:
        """Give the execution up, and raise ``failure``."""
        self.failure = failure
        raise failure

    def answer(self, question: Asked, operations: Sequence[Operation]) -> Answer:
        """Return the answer to the next question."""
        if self.failure is not None:
            raise self.failure
        if self._number < len(self._path):
            expected, found, _ = self._path[self._number]
            if question != expected:
                self._differ(str(expected), str(question))
        elif self._ending is not None:
            self._differ(_shown(self._ending), str(question))
        else:
            found = self._chosen(question)
            self.steps.append(Step(question, found, self._since(operations)))
        self._number += 1
        self._done = len(operations)
        return found

    def _chosen(self, question: Asked) -> Answer:
        try:
            return self._choose(question)
        except (GaveUp, NeedsWholeImage) as failure:
            self.fail(failure)
        except RecursionError:
            self.fail(NeedsWholeImage("a place that was changed too often"))

    def _since(self, operations: Sequence[Operation]) -> Sequence[Operation]:
        return tuple(operations[self._done :]) if self._keeps_operations else ()

    def finish(self, ending: Ending, operations: Sequence[Operation]) -> Ending:
        """End the execution; return the ending with its operations."""
        if self._number < len(self._path):
            self._differ(str(self._path[self._number].question), "nothing more")
        before = self._ending
        if before is not None and before.property_name != ending.property_name:
            self._differ(_shown(before), _shown(ending))
        return Ending(ending.violation, ending.result, self._since(operations))

    def _differ(self, first: str, now: str) -> NoReturn:
        self.fail(
            HarnessError(
                f"the check is not deterministic: after the same {self._number} answers of the "
                f"disk it asked for {first}, and now for {now}; it must depend on nothing but the "
                "disk and the values that were acknowledged, and keep nothing between two calls; "
                "--engine brute allows it to depend on its process id or on the clock"
            )
        )


def _shown(ending: Ending) -> str:
    return f"nothing more, and ended with {ending.violation or 'no violation'}"
