"""Checks in two phases: recover, which reads the disk, then judge the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from oracles.history import Known
from powercut.user_function import must_take
from sim.disk.calls.process import Process

R = TypeVar("R")


# Not with slots: Python 3.11 raises a TypeError when a ``TwoPhases[R]`` of a frozen class is made.
@dataclass(frozen=True)
class TwoPhases(Generic[R]):
    """A check that recovers without the acknowledged values, and compares with them afterwards.

    ``recover(process)`` returns plain values, which can be pickled: all that ``judge(result,
    known)`` needs. ``explore`` then recovers once for all acknowledged values, and judges
    equal results once; every other user calls it as any check.
    """

    recover: Callable[[Process], R]
    judge: Callable[[R, Known], None]

    def __post_init__(self) -> None:
        """Raise ``HarnessError`` for functions of other parameters."""
        must_take("recover of TwoPhases", self.recover, "process")
        must_take("judge of TwoPhases", self.judge, "result", "known")

    def __call__(self, process: Process, known: Known) -> None:
        """Check a disk as a whole."""
        return self.judge(self.recover(process), known)
