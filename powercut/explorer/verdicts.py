"""Verdicts: the result of an exploration under one persistence model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from faults.crash_point import CrashKind, CrashPoint
from oracles.history import Known
from oracles.violation import Violation
from powercut.counted import counted
from powercut.explorer.crash_state import is_possible
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.place import Place
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.disk import Disk

KEPT_FAILURES: Final = 4096

_BY_TEARS: Final = {
    0: "exhaustive, no torn sector",
    1: "exhaustive, at most 1 torn sector",
    None: "exhaustive",
}
HOWS: Final = ("stopped", "sampled", *_BY_TEARS.values())
"""How complete an exploration can be, the least first."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A crash image that the check refused.

    ``crashes`` has one crash point for each lifetime: the workload's, then those of its
    recoveries. ``entries`` is the number of entries that the history had at the first crash,
    ``image`` the key of the image that was checked.
    """

    crashes: tuple[CrashPoint, ...]
    entries: int
    image: object
    violation: Violation

    @property
    def state(self) -> tuple[int, object]:
        """Equal for failures that no check can distinguish."""
        return self.entries, self.image

    @property
    def needs_power_cut(self) -> bool:
        """Whether kills of the process alone do no harm."""
        return any(point.kind is CrashKind.POWER_CUT for point in self.crashes)

    @property
    def simplicity(self) -> tuple[int, ...]:
        """Orders failures: fewer crashes, a kill before a power cut, fewer lost pieces."""
        survivors = [point.survivors for point in self.crashes]
        return (
            len(self.crashes),
            sum(point.kind is not CrashKind.KILL for point in self.crashes),
            sum(len(each.lost) + len(each.torn) for each in survivors),
            sum(len(each.torn) + len(each.stale) for each in survivors),
            self.crashes[0].operation,
        )


class Checker(Protocol):
    """Explores a workload again, with further barriers, and checks a disk again.

    ``takes_known`` is whether a check depends on the values that it is given as known.
    """

    takes_known: bool

    def explore(self, workload: RecordedWorkload, model: PersistenceModel) -> Exploration:
        """Check every crash of a recorded workload under ``model``."""
        ...

    def violation(self, disk: Disk, known: Known) -> Violation | None:
        """Check one disk, and return the violation."""
        ...

    def image(self, found: Exploration, failure: Failure) -> Image:
        """Return the disk of a failure; raises ``HarnessError`` if a recovery has changed."""
        ...

    def is_over(self, found: Exploration) -> bool:
        """Return whether there is no time for another check of ``found``."""
        ...

    def recoveries(self, found: Exploration, failure: Failure) -> Sequence[InterruptedRecovery]:
        """Return the recoveries that the crashes of a failure but the first interrupt.

        There are fewer if the check does not repeat them.
        """
        ...


@dataclass(frozen=True, slots=True)
class InterruptedRecovery:
    """A recovery as a workload: its journal continues that of the program, or begins anew.

    ``before`` is the number of operations of the journal that precede the recovery. ``checker``
    explores its crashes, but crashes no further recoveries. ``model`` is that of its crashes, which
    has fewer pieces than that of the program if only the recovery writes much.
    """

    workload: RecordedWorkload
    before: int
    checker: Checker
    model: PersistenceModel

    def allows(self, point: CrashPoint) -> bool:
        """Return whether one of its crashes is possible, as it is unless the check has changed."""
        return is_possible(self.workload.journal, self.model, self.in_journal(point))

    def in_journal(self, point: CrashPoint) -> CrashPoint:
        """Return a crash of the recovery as one of its journal."""
        return replace(point, operation=self.before + point.operation)


@dataclass(slots=True, repr=False)
class Exploration:
    """The verdict on a workload under ``model``.

    ``built`` is the number of states that were built, ``states`` the number of distinct ones
    that were checked, ``failed`` the number of those that the check refused. ``failures`` has
    the first 4,096 of these, the simplest first. ``exhaustive`` is true if no state that the
    model allows was left out, ``stopped`` if the exploration ended early. ``checker`` is the
    one that has checked them.

    The lazy engine builds no states. ``states`` is then the number of executions of the check
    that decide all of them, and ``decided`` the number of survivor sets at the power cuts of the
    workload, added up, 0 for the other engine. ``most_torn`` is the largest number of torn pieces
    in one of them, None if it was not bounded. ``within`` are the recovery units that were not
    independent of the check at every crash, and were executed within it there.

    If the time was over while a check ran in this process, it was interrupted at the line
    ``interrupted_at``. ``interrupted`` is the crash whose state it checked, None if that was not
    built.

    ``endless`` is the number of checks that did not end in their time, if the other states were
    left out because of them, else 0. ``gave_up`` is true if nothing more of the workload was
    checked because of such checks.

    ``deduced`` is true if nothing was checked: the failures are those of the same workload with
    fewer barriers that remain possible.
    """

    model: PersistenceModel
    workload: RecordedWorkload
    checker: Checker
    built: int = 0
    states: int = 0
    failed: int = 0
    exhaustive: bool = True
    stopped: bool = False
    failures: list[Failure] = field(default_factory=list)
    decided: int = 0
    most_torn: int | None = None
    within: tuple[str, ...] = ()
    interrupted_at: Place | None = None
    interrupted: Failure | None = None
    endless: int = 0
    gave_up: bool = False
    deduced: bool = False

    def empty(self) -> Exploration:
        """Return a verdict on the same workload and model, of which nothing is explored."""
        return Exploration(self.model, self.workload, self.checker)

    @property
    def operations(self) -> int:
        """The number of operations of the workload."""
        return len(self.workload.journal)

    @property
    def safe(self) -> bool:
        return not self.failed

    def __str__(self) -> str:
        passed = "no failure in the first" if self.stopped else "safe of"
        verdict = passed if self.safe else f"unsafe in {self.failed} of"
        checked = counted(str(self.states), "execution" if self.is_lazy else "state")
        return f"{self.model.name}: {verdict} {checked}, {self.how}"

    @property
    def how(self) -> str:
        """Whether all states were checked: exhaustive, sampled, or stopped.

        An exhaustive exploration may leave out states with torn sectors, and says so.
        """
        if self.stopped:
            return "stopped"
        if self.is_lazy and not self.model.is_reduced:
            return _BY_TEARS[self.most_torn]
        return "exhaustive" if self.exhaustive else "sampled"

    @property
    def is_lazy(self) -> bool:
        """Whether the lazy engine has explored it, which builds no states."""
        return self.decided > 0

    def __repr__(self) -> str:
        return f"<Exploration {self}>"

    def stop(self, interrupted_at: Place | None) -> None:
        """End early, because the time is over."""
        self.stopped = True
        self.interrupted_at = interrupted_at

    def fail(self, failure: Failure) -> None:
        """Count a refused state."""
        self.failed += 1
        if len(self.failures) < KEPT_FAILURES:
            self.failures.append(failure)


def last_or_longest(*explorations: Exploration) -> Exploration:
    """Return the last exploration; if it was stopped without a failure, the one with most states.

    The others had none either, so the states of that one have passed.
    """
    last = explorations[-1]
    if not last.stopped or not last.safe:
        return last
    longest = max(explorations, key=lambda each: each.states)
    return replace(longest, exhaustive=False, stopped=True)
