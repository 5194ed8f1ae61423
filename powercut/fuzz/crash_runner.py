"""Planned crashes, and the crash runner: it boots a target, crashes it as planned, boots it again.

A crash is complete. Exceptions out of a crashed process are dropped, its disk refuses all
further calls, and the next lifetime begins on exactly the crash image.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, TypeVar

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
from powercut.fuzz.action import Action, Json
from powercut.fuzz.disk_faults import DiskFaults
from powercut.fuzz.lifetime_recorder import LifetimeRecorder
from powercut.fuzz.run_log import RETURN, Crash, exits_are_failures, failure_of
from powercut.fuzz.tally import Tally
from powercut.fuzz.target import AnyTarget
from powercut.place import Place
from powercut.user_function import refuse_verdict
from sim.choices import Choices
from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.cache.operation import Write
from sim.disk.crash.choose_survivors import choose_survivors
from sim.disk.crash.image import Image
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk
from sim.errors import PowerOff, SimulatedCrash
from sim.world import World

T = TypeVar("T")
R = TypeVar("R")

RECOVERY: Final = "recovery"
DEEPEST: Final = 4
"""The most crashes in a row that one action proposes."""

_PHASES: Final = tuple(Phase)
_FIRST_GUESS: Final = 8
_MOST_PAGES: Final = 2


@dataclass(frozen=True, slots=True)
class PlannedCrash:
    """Crash in this phase of the ``operation``-th mutating operation from now, from 1.

    ``operation`` 0, or a number that is never reached, crashes after the action has returned.
    ``kept`` is the number of bytes that a write has stored when it is killed ``during`` it,
    0 for all of them.
    """

    operation: int
    phase: Phase
    kind: CrashKind
    kept: int = 0

    def plain(self) -> dict[str, Json]:
        """Return it as JSON data; ``of_plain`` reads it back."""
        return {
            "operation": self.operation,
            "phase": str(self.phase),
            "kind": str(self.kind),
            "kept": self.kept,
        }

    @classmethod
    def of_plain(cls, plain: object) -> PlannedCrash:
        """Read the result of ``plain``; ``ValueError`` for anything else."""
        match plain:
            case {
                "operation": int(operation),
                "phase": str(phase),
                "kind": str(kind),
                "kept": int(kept),
            }:
                return cls(operation, Phase(phase), CrashKind(kind), kept)
        raise ValueError(f"not a planned crash: {plain!r}")


class CrashPlanner:
    """Proposes planned crashes within the usual length of an action.

    It remembers the number of operations that each kind of action took last, so that few
    planned crashes lie behind its end.
    """

    __slots__ = ("_operations",)

    def __init__(self) -> None:
        self._operations: dict[str, int] = {}

    def took(self, name: str, operations: int) -> None:
        """Record that ``name`` has returned after this number of mutating operations."""
        self._operations[name] = operations

    def propose(self, choices: Choices, name: str) -> PlannedCrash:
        """Choose one crash of ``name``; the simplest is a kill after it has returned."""
        kind = CrashKind.POWER_CUT if choices.integer("kind", 0, 3) else CrashKind.KILL
        most = self._operations.get(name, _FIRST_GUESS)
        operation = choices.integer("operation", 0, most)
        if not operation:
            return PlannedCrash(0, Phase.AFTER, kind)
        phase = choices.pick("phase", _PHASES)
        kept = 0
        if kind is CrashKind.KILL and phase is Phase.DURING:
            kept = choices.integer("pages", 0, _MOST_PAGES) * BLOCK_BYTES
        return PlannedCrash(operation, phase, kind, kept)


def again(choices: Choices, depth: int) -> bool:
    """Choose whether the recovery from crash number ``depth`` is crashed too."""
    return depth < DEEPEST and choices.integer("again", 0, 3) == 3


def planned(arguments: Mapping[str, Json]) -> tuple[PlannedCrash, ...]:
    """Read the planned crashes of a ``crash_and_recover``; ``ValueError`` if there is none."""
    crashes = arguments["crashes"]
    if not isinstance(crashes, list) or not crashes:
        raise ValueError(f"no planned crashes: {crashes!r}")
    return tuple(PlannedCrash.of_plain(crash) for crash in crashes)


class CrashRunner:
    """Runs ``target`` on ``world`` from crash to crash.

    ``choices`` chooses the survivors of a power cut, and ``crashes`` receives the crashes;
    both are set for each step. ``tally`` counts the crashes.

    ``recorder``, if set, records the lifetimes. ``replace``, if set, is called with the number of
    each power cut, from 1, the disk at it, and the survivors; it returns the image that is booted
    next, or None for the one that the power cut left.
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
        self.recorder: LifetimeRecorder | None = None
        self.replace: Callable[[int, Disk, SurvivorSet], Image | None] | None = None
        self._power_cuts = 0

    def boot(self, crash: PlannedCrash | None = None, depth: int = 0) -> None:
        """Start the next lifetime and let it recover; ``crash`` ends it inside its recovery.

        ``depth`` is the number of crashes in a row before this boot. A recovery that fails
        under a fault is started again without it, and so is one that ``check_recovered`` cannot
        read because of the fault. Raises ``UnreadableAfterCrash`` if recovery fails without a
        fault, or by an exception that is no refusal, and every violation that
        ``check_recovered`` finds.
        """
        while True:
            host = self.world.boot()
            disk = self.world.disk
            if self.recorder is not None:
                self.recorder.begin(disk)
            self.faults.install()
            counter = self._arm(crash)
            failure = self._recover(host)
            if disk.off or (failure is None and self._is_checked(disk)):
                break
            if failure is not None:
                self._must_be_refusal(failure)
            self.tally.marks.reach(RECOVERY_FAILED)
            self.faults.lift()
            self.world.kill()
        if crash is not None:
            self.tally.meet(RECOVERY, disk.journal)
            self._end(RECOVERY, crash, counter, depth)

    def crash(self, during: str, crash: PlannedCrash, run: Callable[[], object]) -> None:
        """Call ``run``, and end the lifetime as planned: inside the call, or after it."""
        disk = self.world.disk
        start = disk.operations
        counter = self._arm(crash)
        try:
            run()
        except (SimulatedCrash, PowerOff):
            pass
        except Exception:
            # A crashed process cannot report the exceptions of its clean-up.
            if not disk.off:
                raise
        if not disk.off:
            self.planner.took(during, disk.operations - start)
        self.tally.meet(during, disk.journal[start:])
        self._end(during, crash, counter, 0)

    def recover_twice(self, end: Callable[[], None]) -> None:
        """Restart twice; raise ``NotIdempotent`` if the second recovery changed the disk.

        ``end`` ends a lifetime.
        """
        end()
        self.boot()
        end()
        before = self.world.image
        self.boot()
        self.check("check_second_recovery", self.target.check_second_recovery)
        changed = self.target.changed_by_boot
        first, second = _tree(before, changed), _tree(self.world.disk.unmounted(), changed)
        paths = sorted(path for path in first | second if first.get(path) != second.get(path))
        if paths:
            raise NotIdempotent(
                "a second recovery changed the disk; name files that every start may change in "
                "changed_by_boot of the target", paths=paths,
                first=first.get(paths[0]), second=second.get(paths[0]),
            )  # fmt: skip

    def call(self, shown: Action | str, function: Callable[[T], R], argument: T) -> R:
        """Call a function of the target whose return guarantees that its work survives.

        A recorder keeps the text of ``shown``.
        """
        with exits_are_failures():
            if self.recorder is None:
                return function(argument)
            with self.recorder.calling(str(shown), function):
                return function(argument)

    def check(self, name: str, check: Callable[[], object]) -> None:
        """Call a check of the target; raise ``VerdictReturned`` if it returns its verdict."""
        returned = check()
        if returned is not None:
            refuse_verdict(name, returned)

    def _arm(self, crash: PlannedCrash | None) -> CrashCounter | None:
        if crash is None or not crash.operation:
            return None
        disk = self.world.disk
        counter = CrashCounter(disk, crash.operation, crash.phase, crash.kept)
        disk.interposer = counter
        return counter

    def _recover(self, host: object) -> Exception | None:
        """Let the target recover; return its exception, unless that is the planned crash."""
        assert self.world.alive
        try:
            failure = failure_of(lambda: self.call(RECOVERY, self.target.recover, host))
        except (SimulatedCrash, PowerOff):
            return None
        if isinstance(failure, Violation):
            raise failure
        return failure

    def _must_be_refusal(self, failure: Exception) -> None:
        """Raise ``UnreadableAfterCrash`` unless a recovery may end by this exception now."""
        if not self.faults.on:
            raise UnreadableAfterCrash(
                "recovery fails, and no fault is in force", raised=repr(failure)
            ) from failure
        if not isinstance(failure, self.target.refusals):
            raise UnreadableAfterCrash(
                "recovery fails under a fault, and not by a refusal", raised=repr(failure)
            )

    def _is_checked(self, disk: Disk) -> bool:
        """Check the recovered state; return False if a fault makes it unreadable."""
        self.planner.took(RECOVERY, disk.operations)
        try:
            self.check("check_recovered", self.target.check_recovered)
        except OSError:
            if not self.faults.on:
                raise
            return False
        return True

    def _end(
        self, during: str, crash: PlannedCrash, counter: CrashCounter | None, depth: int
    ) -> None:
        """End this lifetime as planned, and record the crash exactly."""
        disk = self.world.disk
        hit = counter.hit if counter is not None else None
        survivors = SurvivorSet()
        if crash.kind is CrashKind.KILL:
            self.world.kill()
        else:
            survivors = choose_survivors(self.choices, disk.unsynced().ordering)
            self.world.cut_power(survivors)
            self._power_cuts += 1
            if self.replace is not None:
                replaced = self.replace(self._power_cuts, disk, survivors)
                self.world.image = replaced or self.world.image
        operation, path = RETURN, ""
        if hit is not None:
            operation, path = type(hit.operation).__name__, hit.operation.path
            kept = crash.kept if isinstance(hit.operation, Write) else 0
            point = CrashPoint(hit.number, hit.phase, crash.kind, survivors, kept)
        elif disk.operations:
            point = CrashPoint(disk.operations, Phase.AFTER, crash.kind, survivors)
        else:
            point = CrashPoint(1, Phase.BEFORE, crash.kind, survivors)
        places: Mapping[int, Place] = {}
        if self.recorder is not None:
            places = self.recorder.places
            self.recorder.crash(point)
        self.crashes.append(Crash(during, operation, path, point, disk, places))
        self._count(self.crashes[-1], disk, depth)

    def _count(self, crash: Crash, disk: Disk, depth: int) -> None:
        tally, marks, point = self.tally, self.tally.marks, crash.point
        tally.changed |= disk.operations > 0
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
        if depth and crash.operation != RETURN:
            tally.nested += 1
            marks.reach(NESTED_CRASH if depth == 1 else DEEP_CRASH)
        tally.images.add(self.world.image.digest())
        phase = Phase.AFTER if crash.operation == RETURN else point.phase
        tally.crash_points.add((crash.during, crash.operation, str(phase)))


def _tree(image: Image, changed: Collection[str]) -> dict[str, tuple[object, ...]]:
    """Return type, permissions, owner, link and content by path, without those contents.

    Files whose paths match a pattern of ``changed`` are left out.
    """
    patterns = [path for path in changed if "*" in path]
    return {
        path: (
            inode.mode, inode.uid, inode.gid, inode.link_text,
            inode.read(0, inode.size) if inode.is_file and path not in changed else b"",
        )
        for path, inode in image.tree()
        if not (inode.is_file and any(fnmatchcase(path, pattern) for pattern in patterns))
    }  # fmt: skip
