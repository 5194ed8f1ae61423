"""A subject: one part of the system under test, its shadow, and what can be done to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from oracles.marks import Marks
from powercut.action import Kind
from system.ports import Host


class Subject(Protocol):
    """What a machine acts on.

    ``tag`` is the short name of the target in reproducers and on the command line.
    ``marks`` collects the states that it sees. ``fault_plan`` is set by the machine, as
    it prints: while it is not empty, an ``OSError`` out of the system proves nothing.
    """

    tag: str
    marks: Marks
    fault_plan: str

    @property
    def fault_rules(self) -> Sequence[str]:
        """Return fault rules as they print, beside those of ``disk_faults``."""
        ...

    def kinds(self) -> Sequence[Kind]:
        """Return its kinds of action, the simplest first."""
        ...

    def boot(self, host: Host) -> None:
        """Start a lifetime on ``host``: open and recover; whatever that raises goes through."""
        ...

    def settle(self) -> None:
        """Take the first look after a recovery; raise a ``Violation``."""
        ...


MakeSubject = Callable[[], Subject]
