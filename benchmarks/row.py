"""One row of the table: a figure, its peer's, and the goal for their ratio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Final, Literal

ROUNDS: Final = 7


@dataclass(frozen=True, slots=True)
class Row:
    """``ratio`` is ``ours / beside``; ``goal`` bounds it, from above or from below.

    ``note`` gives the circumstances of the measurement.
    """

    name: str
    ours: float
    beside: float
    unit: str
    bound: Literal["<=", ">="]
    goal: float
    note: str = ""

    @property
    def ratio(self) -> float:
        return self.ours / self.beside

    @property
    def holds(self) -> bool:
        return self.ratio <= self.goal if self.bound == "<=" else self.ratio >= self.goal


def seconds_of(work: Callable[[], object]) -> float:
    """Return the seconds that one call took."""
    start = perf_counter()
    work()
    return perf_counter() - start


def paired(
    ours: Callable[[], object], beside: Callable[[], object], rounds: int = ROUNDS
) -> tuple[float, float]:
    """Time both in turn, after one warm-up each; return the medians in seconds."""
    ours()
    beside()
    times = [(seconds_of(ours), seconds_of(beside)) for _ in range(rounds)]
    return median(time for time, _ in times), median(time for _, time in times)
