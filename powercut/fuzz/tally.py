"""What a run or a campaign did, counted honestly: how much, and how much of it was different."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from faults.crash_point import Phase
from oracles.marks import Marks
from powercut.fuzz.distinct import Distinct
from sim.disk.cache.operation import Operation

_RETURN: Final = "return"


class Reached(NamedTuple):
    """So many out of so many."""

    reached: int
    total: int

    def __str__(self) -> str:
        return f"{self.reached}/{self.total}"


@dataclass(slots=True)
class Tally:
    """``nested`` counts crashes inside a recovery; ``images`` are digests of crash images.

    ``schedules`` are digests of what whole runs did. ``crash_points`` are triples of what
    was running, the kind of operation in which it was crashed (or ``return``), and the
    phase. ``operations`` are pairs of what was running while a crash was planned, and a
    kind of operation that it did.
    """

    runs: int = 0
    steps: int = 0
    kills: int = 0
    power_cuts: int = 0
    nested: int = 0
    faults: int = 0
    images: Distinct = field(default_factory=Distinct)
    schedules: Distinct = field(default_factory=Distinct)
    crash_points: set[tuple[str, str, str]] = field(default_factory=set)
    operations: set[tuple[str, str]] = field(default_factory=set)
    marks: Marks = field(default_factory=Marks)

    @property
    def crashes(self) -> int:
        """How many crashes there were, each with a recovery after it."""
        return self.kills + self.power_cuts

    @property
    def points(self) -> Reached:
        """The crash points, whatever was running: phases of kinds of operation, and the return."""
        names = {name for _, name in self._met()}
        reached = {(name, phase) for _, name, phase in self.crash_points}
        return Reached(len(reached), len(Phase) * len(names - {_RETURN}) + bool(names))

    @property
    def pairs(self) -> Reached:
        """The pairs of what was running and a crash point."""
        met = self._met()
        returns = {during for during, _ in met}
        total = len(Phase) * sum(name != _RETURN for _, name in met) + len(returns)
        return Reached(len(self.crash_points), total)

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
        self.images.update(other.images)
        self.schedules.update(other.schedules)
        self.crash_points |= other.crash_points
        self.operations |= other.operations
        self.marks.add(other.marks)

    def _met(self) -> set[tuple[str, str]]:
        return {(during, name) for during, name, _ in self.crash_points} | self.operations
