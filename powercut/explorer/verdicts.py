"""Verdicts: the result of an exploration under one persistence model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from faults.crash_point import CrashKind, CrashPoint, Phase
from oracles.violation import Violation
from powercut.crash_text import lost_lines, names_on
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.crash.unsynced import Unsynced
from sim.disk.disk import Disk

KEPT_FAILURES: Final = 16


@dataclass(frozen=True, slots=True)
class Failure:
    """A crash image that the check refused.

    ``crashes`` has one crash point for each lifetime: the workload's, then those of its
    recoveries. ``explanation`` are lines of text: the operation at which the workload was
    crashed, and each micro-operation that the crash lost.
    """

    crashes: tuple[CrashPoint, ...]
    violation: Violation
    explanation: tuple[str, ...] = ()


@dataclass(slots=True)
class Exploration:
    """The verdict on a workload under ``model``.

    ``operations`` is the number of operations of the workload, ``built`` the number of states
    that were built, ``states`` the number of distinct ones that were checked, ``failed`` the
    number of those that the check refused. ``failures`` has the first of these, at most 16.
    ``exhaustive`` is true if no state that the model allows was left out.
    """

    model: PersistenceModel
    operations: int = 0
    built: int = 0
    states: int = 0
    failed: int = 0
    exhaustive: bool = True
    failures: list[Failure] = field(default_factory=list)

    @property
    def safe(self) -> bool:
        return not self.failed

    def __str__(self) -> str:
        how = "exhaustive" if self.exhaustive else "sampled"
        verdict = "safe" if self.safe else f"unsafe in {self.failed}"
        return f"{self.model.name}: {verdict} of {self.states} states, {how}"

    def fail(self, disk: Disk, crashes: tuple[CrashPoint, ...], violation: Violation) -> None:
        """Count a refused state; ``disk`` is the disk of the workload."""
        self.failed += 1
        if len(self.failures) < KEPT_FAILURES:
            explanation = tuple(_explanation(disk, crashes[0]))
            self.failures.append(Failure(crashes, violation, explanation))


def _explanation(disk: Disk, point: CrashPoint) -> Iterator[str]:
    """Yield the operation at ``point`` of the journal of ``disk``, and each loss of the crash."""
    if not disk.journal:
        yield "before any operation"
        return
    operation = disk.journal[point.operation - 1]
    yield f"{point.phase} {type(operation).__name__.lower()} {operation.path or 'everything'}"
    if point.kind is CrashKind.POWER_CUT:
        unsynced = Unsynced(disk.model, disk.image.platter, disk.image.unsynced)
        done = point.operation - (point.phase is Phase.BEFORE)
        for number, each in enumerate(disk.journal[:done], 1):
            unsynced.advance(each, number)
        yield from lost_lines(unsynced.micros, point.survivors, names_on(disk))
