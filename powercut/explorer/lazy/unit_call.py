"""Calls of recovery units: questions whose answer is the result of a function that only reads."""

from __future__ import annotations

import pickle
from pkgutil import resolve_name
from typing import Any, Final, NamedTuple, TypeAlias

from powercut.explorer.lazy.footprint import Place
from sim.disk.calls.process import Process
from sim.disk.crash.undecided.question import DroppedPages, Question
from sim.disk.disk import Disk
from sim.errors import HarnessError, described

WITHIN: Final = b""
"""The answer to a unit that is not independent: the check executes it within itself."""


class UnitCall(NamedTuple):
    """A question for the result of ``function``, ``module:name``, with plain ``arguments``.

    ``written`` are the places that the check has changed before. The answer is the pickled
    result, or ``WITHIN``.
    """

    function: str
    arguments: tuple[Any, ...]
    written: tuple[Place, ...]

    def __str__(self) -> str:
        return f"the result of {self.function}{self.arguments}"

    def execute(self, disk: Disk) -> bytes:
        """Call the function on a disk; ``WITHIN`` if it writes, or ends by an exception.

        Raises ``HarnessError`` for a result that cannot be pickled.
        """
        try:
            found = resolve_name(self.function)(Process(disk), *self.arguments)
        except (Exception, SystemExit):  # the check calls it again, and gets the same one
            return WITHIN
        return WITHIN if disk.journal else self._pickled(found)

    def _pickled(self, found: object) -> bytes:
        try:
            return pickle.dumps(found)
        except Exception as error:
            raise HarnessError(
                f"the recovery unit {self.function} returned a value that cannot be copied "
                f"({described(error)}); return plain values"
            ) from None

    def result_of(self, answer: bytes) -> Any:
        """Return the result that is not ``WITHIN``, a new copy each time."""
        return pickle.loads(answer)


Asked: TypeAlias = Question | DroppedPages | UnitCall
