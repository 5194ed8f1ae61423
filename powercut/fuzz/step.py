"""One step of a run, as it is remembered: what was done, what it asked, how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from faults.crash_point import CrashPoint
from powercut.fuzz.action import Action
from sim.choices import Chosen
from sim.disk.cache.operation import Operation
from sim.disk.disk import Disk


@dataclass(frozen=True, slots=True)
class Crash:
    """One crash of a step.

    ``during`` is what was running (a kind of action, or ``recovery``); ``operation`` is the
    one that met the crash point, or None when what was running had already returned.
    ``disk`` is the dead disk, as evidence: the survivor set of ``point`` counts in what is
    pending there. It is None when the crash was long ago.
    """

    during: str
    operation: Operation | None
    point: CrashPoint
    disk: Disk | None

    @property
    def operation_name(self) -> str:
        """What kind of operation was hit: ``Write``, ``Sync``; ``return`` when none was."""
        return type(self.operation).__name__ if self.operation is not None else "return"


@dataclass(slots=True)
class Step:
    """``chosen`` is every choice that performing the action asked for, in order."""

    number: int
    action: Action
    chosen: list[Chosen] = field(default_factory=list)
    crashes: list[Crash] = field(default_factory=list)
    outcome: str = ""

    def forget_disks(self) -> None:
        """Let go of the dead disks of its crashes."""
        self.crashes[:] = [replace(crash, disk=None) for crash in self.crashes]
