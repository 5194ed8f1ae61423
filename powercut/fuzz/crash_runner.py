"""One lifetime of a target after the other: boot, crash as planned, boot again.

It keeps the promise that a crash is whole: what a dying process raises is dropped, its
disk is poisoned, and the next lifetime begins on exactly what the crash left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from faults.crash_counter import CrashCounter
from faults.crash_point import CrashKind, CrashPoint, Phase
from oracles.marks import (
    DEEP_CRASH,
    KILLED,
    NESTED_CRASH,
    POWER_CUT_KEPT,
    POWER_CUT_LOST,
    RECOVERY_FAILED,
    TORN,
)
from oracles.violation import NotIdempotent, UnreadableAfterCrash, Violation
from powercut.fuzz.crash_plan import CrashPlanner, PlannedCrash
from powercut.fuzz.disk_faults import DiskFaults
from powercut.fuzz.finding import failure_of
from powercut.fuzz.step import Crash
from powercut.fuzz.tally import Tally
from powercut.fuzz.target import AnyTarget
from sim.choices import Choices
from sim.disk.cache.operation import Write
from sim.disk.crash.choose_survivors import choose_survivors
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk
from sim.errors import PowerOff, SimulatedCrash
from sim.world import World
from system.ports import Host

RECOVERY: Final = "recovery"


class CrashRunner:
    """Runs ``target`` on ``world`` from crash to crash.

    ``choices`` answers what a crash asks; whoever performs a step sets it. ``crashes``
    grows with every crash; ``tally`` counts them.
    """

    def __init__(
        self,
        target: AnyTarget,
        world: World[Any],
        faults: DiskFaults,
        tally: Tally,
        choices: Choices,
    ) -> None:
        self.target = target
        self.world = world
        self.faults = faults
        self.tally = tally
        self.choices = choices
        self.planner = CrashPlanner()
        self.crashes: list[Crash] = []

    def boot(self, crash: PlannedCrash | None = None, depth: int = 0) -> None:
        """Start the next lifetime and let it recover; ``crash`` ends it inside its recovery.

        ``depth`` is how many crashes in a row came before. A recovery that a fault stops
        is started again on a sound disk. Raises ``UnreadableAfterCrash`` when the system
        does not come up on a sound disk, and what the first look finds.
        """
        while True:
            host = self.world.boot()
            disk = self.world.disk
            self.faults.install()
            counter = self._arm(crash)
            failure = self._recover(host)
            if failure is None or disk.off:
                break
            if not self.faults.on:
                raise UnreadableAfterCrash(
                    "the system does not come up, and no fault is on", raised=repr(failure)
                )
            self.tally.marks.reach(RECOVERY_FAILED)
            self.faults.lift()
            self.world.kill()
        if not disk.off:
            self.planner.took(RECOVERY, disk.operations)
            self.target.check_recovered()
        if crash is not None:
            self.tally.meet(RECOVERY, disk.journal)
            self._end(RECOVERY, crash, counter, depth)

    def crash(self, during: str, crash: PlannedCrash, run: Callable[[], object]) -> None:
        """Run something, and end the lifetime as planned: within it, or when it returned."""
        disk = self.world.disk
        start = disk.operations
        counter = self._arm(crash)
        try:
            run()
        except (SimulatedCrash, PowerOff):
            pass
        except Exception:
            # What the clean-up of a dead process raises was never seen by anyone.
            if not disk.off:
                raise
        if not disk.off:
            self.planner.took(during, disk.operations - start)
        self.tally.meet(during, disk.journal[start:])
        self._end(during, crash, counter, 0)

    def recover_twice(self, end: Callable[[], None]) -> None:
        """Restart two times; raise ``NotIdempotent`` if the second recovery changed anything.

        ``end`` ends a lifetime.
        """
        end()
        self.boot()
        end()
        before = self.world.image
        self.boot()
        disk, changed = self.world.disk, self.target.changed_by_boot
        # Where every boot changes something, the files alone can be compared.
        if not changed and before.digest() == disk.unmounted().digest():
            return
        first, second = before.files(), disk.files()
        for path in changed:
            if path in first and path in second:
                first[path] = second[path] = b""
        if not changed or first != second:
            raise NotIdempotent("a second recovery changed the disk", first=first, second=second)

    def _arm(self, crash: PlannedCrash | None) -> CrashCounter | None:
        if crash is None or not crash.operation:
            return None
        disk = self.world.disk
        counter = CrashCounter(disk, crash.operation, crash.phase, crash.kept)
        disk.interposer = counter
        return counter

    def _recover(self, host: Host) -> Exception | None:
        """Let the target open and recover; return what it raised, a crash excepted."""
        try:
            failure = failure_of(lambda: self.target.recover(host))
        except (SimulatedCrash, PowerOff):
            return None
        if isinstance(failure, Violation):
            raise failure
        return failure

    def _end(
        self, during: str, crash: PlannedCrash, counter: CrashCounter | None, depth: int
    ) -> None:
        """End this lifetime as planned, and remember exactly how it was."""
        disk = self.world.disk
        hit = counter.hit if counter is not None else None
        survivors = SurvivorSet()
        if crash.kind is CrashKind.KILL:
            self.world.kill()
        else:
            survivors = choose_survivors(self.choices, disk.unsynced().ordering)
            self.world.cut_power(survivors)
        if hit is not None:
            kept = crash.kept if isinstance(hit.operation, Write) else 0
            point = CrashPoint(hit.number, hit.phase, crash.kind, survivors, kept)
        elif disk.operations:
            point = CrashPoint(disk.operations, Phase.AFTER, crash.kind, survivors)
        else:
            point = CrashPoint(1, Phase.BEFORE, crash.kind, survivors)
        self.crashes.append(Crash(during, hit and hit.operation, point, disk))
        self._count(self.crashes[-1], disk, depth)

    def _count(self, crash: Crash, disk: Disk, depth: int) -> None:
        tally, marks, point = self.tally, self.tally.marks, crash.point
        if point.kind is CrashKind.KILL:
            tally.kills += 1
            marks.reach(KILLED)
        else:
            tally.power_cuts += 1
            if point.survivors.lost:
                marks.reach(POWER_CUT_LOST)
            elif disk.unsynced().micros:
                marks.reach(POWER_CUT_KEPT)
            if point.survivors.torn:
                marks.reach(TORN)
        if depth and crash.operation is not None:
            tally.nested += 1
            marks.reach(NESTED_CRASH if depth == 1 else DEEP_CRASH)
        tally.images.add(self.world.image.digest())
        tally.crash_points.add((crash.during, crash.operation_name, str(point.phase)))
