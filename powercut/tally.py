"""What a run or a campaign did, counted honestly: how much, and how much of it was different."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from faults.crash_point import Phase
from oracles.marks import Marks
from sim.disk.operation import Operation

_RETURN: Final = "return"


@dataclass(slots=True)
class Tally:
    """``nested`` counts crashes inside a recovery; ``images`` are digests of crash images.

    ``crash_points`` are triples of what was running, the kind of operation in which it was
    crashed (or ``return``), and the phase. ``operations`` are pairs of what was running
    while a crash was planned, and a kind of operation that it did.
    """

    runs: int = 0
    steps: int = 0
    kills: int = 0
    power_cuts: int = 0
    nested: int = 0
    faults: int = 0
    images: set[str] = field(default_factory=set)
    crash_points: set[tuple[str, str, str]] = field(default_factory=set)
    operations: set[tuple[str, str]] = field(default_factory=set)
    marks: Marks = field(default_factory=Marks)

    @property
    def possible_crash_points(self) -> int:
        """How many crash points there are: every phase of every operation, and every return."""
        met = {(during, name) for during, name, _ in self.crash_points} | self.operations
        returns = {during for during, _ in met}
        return len(Phase) * sum(name != _RETURN for _, name in met) + len(returns)

    def meet(self, during: str, journal: Iterable[Operation]) -> None:
        """Note what was done while something ran."""
        self.operations.update((during, type(operation).__name__) for operation in journal)

    def add(self, other: Tally) -> None:
        """Add what another run did."""
        self.runs += other.runs
        self.steps += other.steps
        self.kills += other.kills
        self.power_cuts += other.power_cuts
        self.nested += other.nested
        self.faults += other.faults
        self.images |= other.images
        self.crash_points |= other.crash_points
        self.operations |= other.operations
        self.marks.add(other.marks)
