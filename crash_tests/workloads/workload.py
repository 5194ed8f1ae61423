"""A scenario: a workload, its check, and what it is there to show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from oracles.history import History
from powercut.explorer.explore import Check, Workload
from powercut.explorer.limits import Limits
from sim.disk.calls.process import Process

_FAR: Final = Limits()


@dataclass(frozen=True, slots=True)
class Scenario:
    """``tag`` names it on the command line; ``about`` says in a few words what it does.

    ``check`` left out means "old or new". ``limits``: how far to go, at most. One that is not
    ``sound`` has a hole on purpose, and runs only when it is asked for.
    """

    tag: str
    about: str
    workload: Workload
    check: Check | None = None
    limits: Limits = _FAR
    sound: bool = True

    def __call__(self, process: Process, ack: History) -> None:
        """Run the workload, as the registry takes it."""
        self.workload(process, ack)
