"""What a run or a campaign did, counted honestly: how much, and how much of it was different."""

from __future__ import annotations

from dataclasses import dataclass, field

from oracles.marks import Marks


@dataclass(slots=True)
class Tally:
    """``nested`` counts crashes inside a recovery; ``images`` are digests of crash images.

    ``crash_points`` are triples of what was running, the kind of operation in which it was
    crashed, and the phase.
    """

    runs: int = 0
    steps: int = 0
    kills: int = 0
    power_cuts: int = 0
    nested: int = 0
    faults: int = 0
    images: set[str] = field(default_factory=set)
    crash_points: set[tuple[str, str, str]] = field(default_factory=set)
    marks: Marks = field(default_factory=Marks)

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
        self.marks.add(other.marks)
