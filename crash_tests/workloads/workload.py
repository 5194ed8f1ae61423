"""A workload of ``powercut explore`` with its check and its limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from oracles.history import History
from powercut.explorer.judge import Check
from powercut.explorer.limits import Limits
from sim.disk.calls.process import Process

Run: TypeAlias = Callable[[Process, History], None]

_LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True)
class Workload:
    """A function that is crashed at every point, with the attributes that the registry reads.

    ``about`` is its purpose in a few words. Without a ``check``, files must be old or new.
    A workload that is not ``sound`` demonstrates a bug, and runs only when it is named.
    """

    about: str
    run: Run
    check: Check | None = None
    limits: Limits = _LIMITS
    sound: bool = True

    def __call__(self, process: Process, ack: History) -> None:
        """Run the workload once."""
        self.run(process, ack)
