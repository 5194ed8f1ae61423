"""The judge: checks every crash of a recorded workload, by the engine that suits it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from oracles.history import History, Known
from oracles.violation import Violation
from powercut.explorer.built_explorer import MOST_FIRST_CHECKS, BuiltExplorer
from powercut.explorer.check_violation import violation_raised
from powercut.explorer.crash_state import image_after
from powercut.explorer.image_results import ImageResults
from powercut.explorer.interposed_check import InterposedCheck
from powercut.explorer.journals import MOST_SECTORS, CrashImage
from powercut.explorer.large_writes import fitting
from powercut.explorer.lazy.lazy_explorer import LazyExplorer
from powercut.explorer.lazy.phases import PhasedCheck, phased_check
from powercut.explorer.lazy.units import Trees
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.recovery import recoveries_of
from powercut.explorer.recovery_results import Recovered, RecoveryResults
from powercut.explorer.repair import OutOfTime
from powercut.explorer.running_check import running_check
from powercut.explorer.ticker import Stopped, Tick
from powercut.explorer.verdicts import (
    Exploration,
    Failure,
    InterruptedRecovery,
    last_or_longest,
)
from powercut.place import Place
from powercut.place_recorder import PlaceRecorder
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.disk import Disk
from sim.loop.sandbox import SANDBOX

Check: TypeAlias = Callable[[Process, Known], None]

_BATCH: Final = 64
"""Images for each process that are built before they are checked.

Building and checking by turns would displace each other's code from the caches of the processor.
"""

FORK: Final = 16
"""The number of calls of a check that take as long as one in a process of its own."""

FEW_STATES: Final = 256
"""States of a crash point above which ``Engine.AUTO`` tries the lazy engine, if the workload or
the check is interposed."""

MOST_CHECKS: Final = 2048
"""Images that are checked for one verdict of ``Engine.AUTO`` then; the others are left out."""

MOST_ENDLESS_IN_ALL: Final = 64
"""Checks of a workload that do not end; then its time is over, also for missing barriers."""


def never_stop(_found: Exploration, _operation: int) -> bool:
    """Let an exploration run to its end."""
    return True


class Judge:
    """Explores one workload, under several models and with further barriers.

    ``check`` is called with the disk that the next boot finds, and with the values that were
    acknowledged and in flight at the crash. It is called once for equal images, whatever models
    allow them. Unless the recovery is crashed as well (``limits.nested``), it is called once for
    images that it cannot distinguish, in ``processes`` forked processes. The lazy engine has
    ``deciding`` processes, by default as many. ``tick`` is called several times a second.
    ``unfinished`` is the exploration that a ``HarnessError`` of the check has ended.
    """

    takes_known = True

    def __init__(
        self,
        check: Check,
        limits: Limits,
        processes: int = 1,
        tick: Tick = never_stop,
        deciding: int | None = None,
    ) -> None:
        self.limits = limits
        self._tick = tick
        self.unfinished: Exploration | None = None
        self.most_in_batch = _BATCH * processes
        self.processes = processes
        self._deciding = deciding or processes
        self._check = check
        self._phased: PhasedCheck | None = None
        self._trees = Trees({}, {})
        self._results: ImageResults | None = None
        self._recoveries = RecoveryResults(self.checked)
        self._lazy: LazyExplorer | None = None
        self._gave_up: set[str] = set()

    def explore(self, workload: RecordedWorkload, model: PersistenceModel) -> Exploration:
        """Check every crash of a recorded workload under ``model``.

        The verdict is on a reduced model (``fitting``) if too much data is unsynced.
        """
        fitted = fitting(model, workload.journal, MOST_SECTORS)
        with SANDBOX.interruptible():
            return self._explored(workload, fitted)

    def _explored(self, workload: RecordedWorkload, model: PersistenceModel) -> Exploration:
        engine = self.limits.engine
        if engine == Engine.LAZY:
            return self._lazily(workload, model) or self._built(workload, model)
        is_interposed = bool(workload.root) or isinstance(self._check, InterposedCheck)
        is_slow = engine == Engine.AUTO and is_interposed
        few, most = (FEW_STATES, MOST_CHECKS) if is_slow else (None, None)
        found = self._built(workload, model, few, most)
        if engine == Engine.BRUTE or found.exhaustive or found.stopped or not found.safe:
            return found
        if not is_slow:
            return last_or_longest(found, self._lazily(workload, model) or found)
        first = self._built(workload, model, None, MOST_FIRST_CHECKS, is_thin=True)
        if first.stopped or not first.safe:
            return first
        # Further barriers, which the diagnosis inserts, rarely let it succeed then.
        lazily = None if model.name in self._gave_up else self._lazily(workload, model)
        if lazily is None:
            self._gave_up.add(model.name)
        return last_or_longest(found, first, lazily or self._built(workload, model, None, most))

    def _built(
        self,
        workload: RecordedWorkload,
        model: PersistenceModel,
        few: int | None = None,
        most: int | None = None,
        *,
        is_thin: bool = False,
    ) -> Exploration:
        """Return the verdict of built images.

        If ``few`` is given, a crash point has as many at most, and the exploration ends at the
        first one that has more, unless an image has failed by then. ``most`` is the approximate
        number of images that are checked, spread evenly over the workload. If it ``is_thin``, a
        crash point has only those that lose everything behind a call, or one call.
        """
        return BuiltExplorer(self, workload, model, few, most, is_thin=is_thin).run()

    def _lazily(self, workload: RecordedWorkload, model: PersistenceModel) -> Exploration | None:
        """Return the verdict of the lazy engine, None if it has none."""
        if self._lazy is None:
            self._lazy = LazyExplorer(
                self._in_phases(workload.history),
                self._trees,
                self.checked,
                self.limits,
                self._deciding,
                self.tick,
                FORK if isinstance(self._check, InterposedCheck) else 1,
            )
        return self._lazy.explore(Exploration(model, workload, self))

    def results(self, history: History) -> ImageResults:
        """Return the results of the check on images, which grow."""
        if self._results is None:
            is_slow = isinstance(self._check, InterposedCheck) and not self.limits.nested
            by_answers = is_slow and self.limits.engine == Engine.AUTO
            self._results = ImageResults(
                self._in_phases(history), self.processes, self._trees if by_answers else None
            )
        return self._results

    def recovered(self, crashed: CrashImage, known: Known, model: PersistenceModel) -> Recovered:
        """Check an image, and return the operations too; raises ``Stopped`` if interrupted."""
        return self._recoveries.of(crashed, known, model)

    def _in_phases(self, history: History) -> PhasedCheck:
        if self._phased is None:
            self._phased = phased_check(self._check, self.checked, history)
        return self._phased

    @property
    def endless(self) -> int:
        """The number of checks that did not end in their time."""
        return self._check.endless if isinstance(self._check, InterposedCheck) else 0

    def tick(self, found: Exploration, operation: int) -> bool:
        """Return whether there is time for another check; called several times a second."""
        found.gave_up = found.gave_up or self.endless >= MOST_ENDLESS_IN_ALL
        return not found.gave_up and self._tick(found, operation)

    def is_over(self, found: Exploration) -> bool:
        """Return whether there is no time for another check."""
        return not self.tick(found, found.operations)

    def violation(self, disk: Disk, known: Known) -> Violation | None:
        """Check a disk once; raises ``OutOfTime`` if the check is interrupted."""
        try:
            return self.checked(disk, known)
        except Stopped:
            raise OutOfTime from None

    def checked(self, disk: Disk, known: Known) -> Violation | None:
        """Check a disk once; raises ``Stopped`` if the check is interrupted."""
        return violation_raised(lambda: self._check(Process(disk), known))

    def image(self, found: Exploration, failure: Failure) -> Image:
        """Return the disk of a failure; its recoveries are run and crashed again."""
        workload = found.workload
        known = workload.history.known(failure.entries)
        return image_after(
            workload.journal, found.model, failure.crashes,
            lambda disk: self.violation(disk, known),
        )  # fmt: skip

    def recoveries(self, found: Exploration, failure: Failure) -> Sequence[InterruptedRecovery]:
        """Return the recoveries that the crashes of a failure but the first interrupt."""
        limits = replace(self.limits, nested=0)
        judge = Judge(self._check, limits, self.processes, self.tick, self._deciding)
        return [*recoveries_of(found, failure, self._recover, judge)]

    def _recover(self, disk: Disk, known: Known) -> Mapping[int, Place]:
        """Check a disk, and return the lines of the operations of the check."""
        check = self._check
        if isinstance(check, InterposedCheck):
            try:
                with running_check():
                    return check.recover(Process(disk), known)
            except Stopped:
                raise OutOfTime from None
        recorder = PlaceRecorder(disk)
        self.violation(disk, known)
        return recorder.places
