"""A scenario: a workload, its check, and what it is there to show."""

from __future__ import annotations

from dataclasses import dataclass

from powercut.explore import Check, Workload


@dataclass(frozen=True, slots=True)
class Scenario:
    """``tag`` names it on the command line; ``about`` says in a few words what it does.

    ``check`` left out means "old or new". ``nested``: how many times a crash may hit the
    recovery too. One that is not ``sound`` has a hole on purpose, and runs only when it is
    asked for.
    """

    tag: str
    about: str
    workload: Workload
    check: Check | None = None
    nested: int = 0
    sound: bool = True
