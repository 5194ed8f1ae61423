"""Counts of a run or a campaign: how much was done, and how much of it was different.

``Distinct`` counts different digests in bounded memory. Up to ``KEPT`` different ones the
count is exact. Above, the ``KEPT`` smallest hashes are a uniform sample of all different
ones, and the largest of them estimates the number within 1.1 % two times in three
(Bar-Yossef et al., RANDOM 2002; Beyer et al., SIGMOD 2007). The number of occurrences is
exact for each of the sample, and so is the share that occurred once: it estimates the
probability that the next digest is new (Good, Biometrika 1953).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from xxhash import xxh3_64_intdigest

from faults.crash_point import Phase
from oracles.marks import Marks
from sim.disk.cache.operation import Operation

KEPT: Final = 8192

_HASHES: Final = 1 << 64
_RETURN: Final = "return"


class Distinct:
    """A count of different digests; ``added`` is the number of all, equal ones included.

    The counts depend only on the digests, not on their order or on their distribution over
    the counts that were merged.
    """

    __slots__ = ("_limit", "_times", "added")

    def __init__(self) -> None:
        self.added = 0
        # All hashes below the limit, each with its number of occurrences.
        self._times: dict[int, int] = {}
        self._limit = _HASHES

    def add(self, digest: str) -> None:
        """Add one digest."""
        self.added += 1
        number = xxh3_64_intdigest(digest.encode("utf-8", "surrogatepass"))
        if number < self._limit:
            self._times[number] = self._times.get(number, 0) + 1
            if len(self._times) > 2 * KEPT:
                self._trim()

    def update(self, other: Distinct) -> None:
        """Add all digests of another count."""
        self.added += other.added
        times = self._times
        for number, count in other._times.items():
            times[number] = times.get(number, 0) + count
        if min(self._limit, other._limit) < _HASHES:
            self._limit = limit = min(self._limit, other._limit)
            self._times = {number: count for number, count in times.items() if number < limit}
        self._trim()

    @property
    def exact(self) -> bool:
        """Whether ``count`` is exact, not an estimate."""
        self._trim()
        return self._limit == _HASHES

    @property
    def count(self) -> int:
        """The number of different digests."""
        self._trim()
        return self._scaled(len(self._times))

    @property
    def chance_of_new(self) -> float:
        """The probability, from 0 to 1, that the next digest is a new one."""
        self._trim()
        once = sum(count == 1 for count in self._times.values())
        return min(1.0, self._scaled(once) / self.added) if self.added else 1.0

    def __str__(self) -> str:
        return f"{self.count:,}" if self.exact else f"~{self.count:,}"

    def _scaled(self, number: int) -> int:
        return number * _HASHES // self._limit

    def _trim(self) -> None:
        """Lower the limit to the smallest hash that is not among the ``KEPT`` smallest."""
        if len(self._times) > KEPT:
            smallest = sorted(self._times)
            self._limit = smallest[KEPT]
            self._times = {number: self._times[number] for number in smallest[:KEPT]}


class Reached(NamedTuple):
    """A number out of a total."""

    reached: int
    total: int

    def __str__(self) -> str:
        return f"{self.reached}/{self.total}"


@dataclass(slots=True)
class Tally:
    """The counts of one run, or of many added up.

    ``nested`` counts crashes inside a recovery, ``faults`` the faults injected. ``images``
    are digests of crash images, ``schedules`` of whole runs. ``crash_points`` are triples of
    the running action, the kind of operation at which it was crashed (or ``return``), and
    the phase. ``operations`` are pairs of a running action and a kind of operation that it
    did while a crash was planned. ``changed`` says whether the disk was ever changed.
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
    changed: bool = False

    @property
    def crashes(self) -> int:
        """The number of crashes, each followed by a recovery."""
        return self.kills + self.power_cuts

    @property
    def points(self) -> Reached:
        """The crash points of any action: the phases of each kind of operation, and the return."""
        names = {name for _, name in self._met()}
        reached = {(name, phase) for _, name, phase in self.crash_points}
        return Reached(len(reached), len(Phase) * len(names - {_RETURN}) + bool(names))

    @property
    def pairs(self) -> Reached:
        """The pairs of a running action and a crash point."""
        met = self._met()
        returns = {during for during, _ in met}
        total = len(Phase) * sum(name != _RETURN for _, name in met) + len(returns)
        return Reached(len(self.crash_points), total)

    def meet(self, during: str, journal: Iterable[Operation]) -> None:
        """Record the operations that were done while ``during`` ran."""
        self.operations.update((during, type(operation).__name__) for operation in journal)

    def add(self, other: Tally) -> None:
        """Add the counts of other runs."""
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
        self.changed |= other.changed

    def _met(self) -> set[tuple[str, str]]:
        return {(during, name) for during, name, _ in self.crash_points} | self.operations
