"""Checks as the engines execute them: in one phase, or in two of which each is executed once."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Protocol

from xxhash import xxh3_128_digest

from oracles.history import History, Known
from oracles.violation import Violation
from powercut.explorer.check_violation import violation_raised
from powercut.explorer.lazy.tree import Ending
from powercut.explorer.two_phases import TwoPhases
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from sim.errors import HarnessError, described

CheckDisk = Callable[[Disk, Known], Violation | None]


class PhasedCheck(Protocol):
    """A check after a crash; ``entries`` is the number of entries that the history had at it."""

    def tree(self, entries: int) -> int:
        """Return a number that is equal where the check reads an equal disk equally.

        The lazy engine has an observation tree for each.
        """
        ...

    def execute(self, disk: Disk, entries: int) -> Ending:
        """Run the check as far as it reads the disk."""
        ...

    def violation(self, ending: Ending, entries: int) -> Violation | None:
        """Return the violation at the end of an execution, or None."""
        ...


class OnePhase:
    """A check that may depend on the acknowledged values from its beginning."""

    def __init__(self, check: CheckDisk, history: History) -> None:
        self._check = check
        self._history = history

    def tree(self, entries: int) -> int:
        return entries

    def execute(self, disk: Disk, entries: int) -> Ending:
        return Ending(self._check(disk, self._history.known(entries)))

    def violation(self, ending: Ending, _entries: int) -> Violation | None:
        return ending.violation


class Phases:
    """A check in two phases: one tree for all acknowledged values, equal results judged once."""

    def __init__(self, check: TwoPhases[Any], history: History) -> None:
        self._check = check
        self._history = history
        # By the digest of a result: the results themselves would fill the memory.
        self._judged: dict[tuple[bytes, int], Violation | None] = {}

    def tree(self, _entries: int) -> int:
        return 0

    def execute(self, disk: Disk, _entries: int) -> Ending:
        result = b""

        def recover() -> None:
            nonlocal result
            result = _copied(self._check.recover(Process(disk)))

        violation = violation_raised(recover)
        return Ending(violation, result)

    def violation(self, ending: Ending, entries: int) -> Violation | None:
        if ending.violation is not None:
            return ending.violation
        place = (xxh3_128_digest(ending.result), entries)
        if place not in self._judged:
            result, known = pickle.loads(ending.result), self._history.known(entries)
            self._judged[place] = violation_raised(lambda: self._check.judge(result, known))
        return self._judged[place]


def phased_check(check: Callable[..., None], alone: CheckDisk, history: History) -> PhasedCheck:
    """Return a check of ``history`` for the engines; ``alone`` runs it as a whole."""
    if isinstance(check, TwoPhases):
        return Phases(check, history)
    return OnePhase(alone, history)


def _copied(result: object) -> bytes:
    try:
        return pickle.dumps(result)
    except Exception as error:
        raise HarnessError(
            f"recover returned a value that cannot be copied ({described(error)}); "
            "return plain values, not the running program"
        ) from None
