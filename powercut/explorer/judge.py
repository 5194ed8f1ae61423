"""The judge: checks every crash image of a recorded workload, each distinct one once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from oracles.history import History, Known
from oracles.violation import UnreadableAfterCrash, Violation
from powercut.explorer.check_violation import violation_raised
from powercut.explorer.even_share import EvenShare
from powercut.explorer.image_results import ImageResults
from powercut.explorer.interposed_check import InterposedCheck
from powercut.explorer.journals import MOST_SECTORS, CrashImage, Journals, Key
from powercut.explorer.large_writes import fitting
from powercut.explorer.lazy.lazy_explorer import LazyExplorer
from powercut.explorer.lazy.phases import PhasedCheck, phased_check
from powercut.explorer.lazy.units import Trees
from powercut.explorer.limits import Engine, Limits
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.recovery import recoveries_of
from powercut.explorer.repair import OutOfTime
from powercut.explorer.running_check import running_check
from powercut.explorer.ticker import Stopped, Tick, Ticker
from powercut.explorer.verdicts import Exploration, Failure, InterruptedRecovery
from powercut.place import Place
from powercut.place_recorder import PlaceRecorder
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.disk import Disk
from sim.errors import HarnessError
from sim.loop.sandbox import SANDBOX

Check: TypeAlias = Callable[[Process, Known], None]


_BATCH: Final = 64
_FIRST_BATCH: Final = 4
_QUICK_S: Final = 1.0
"""A batch that took less time may be followed by a larger one."""

FORK: Final = 16
"""The number of calls of a check that take as long as one in a process of its own."""

FEW_STATES: Final = 256
"""States of a crash point above which ``Engine.AUTO`` tries the lazy engine, if the workload or
the check is interposed."""

MOST_CHECKS: Final = 2048
"""Images that are checked for one verdict of ``Engine.AUTO`` then; the others are left out."""

MOST_FIRST_CHECKS: Final = 512
"""Images that are checked before the lazy engine is tried, a few of each crash point."""


def never_stop(_found: Exploration, _operation: int) -> bool:
    """Let an exploration run to its end."""
    return True


class Judge:
    """Explores one workload, under several models and with further barriers.

    ``check`` is called with the disk that the next boot finds, and with the values that were
    acknowledged and in flight at the crash. Unless the recovery is crashed as well
    (``limits.nested``), it is called once for images that it cannot distinguish, whatever models
    allow them, in ``processes`` forked processes. The lazy engine has ``deciding`` processes,
    by default as many. ``tick`` is called several times a second. ``unfinished`` is the
    exploration that a ``HarnessError`` of the check has ended.
    """

    def __init__(
        self,
        check: Check,
        limits: Limits,
        processes: int = 1,
        tick: Tick = never_stop,
        deciding: int | None = None,
    ) -> None:
        self.limits = limits
        self.tick = tick
        self.unfinished: Exploration | None = None
        self.most_in_batch = _BATCH * processes if processes > 1 and not limits.nested else 1
        self.processes = processes
        self._deciding = deciding or processes
        self._check = check
        self._phased: PhasedCheck | None = None
        self._trees = Trees({}, {})
        self._results: ImageResults | None = None
        self._lazy: LazyExplorer | None = None
        self._gave_up: set[str] = set()

    def explore(self, workload: RecordedWorkload, model: PersistenceModel) -> Exploration:
        """Check every crash of a recorded workload under ``model``.

        The verdict is on a model with whole calls if too much data is unsynced.
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
            return _last_or_longest(found, self._lazily(workload, model) or found)
        first = self._built(workload, model, None, MOST_FIRST_CHECKS, is_thin=True)
        if first.stopped or not first.safe:
            return first
        # Further barriers, which the diagnosis inserts, rarely let it succeed then.
        lazily = None if model.name in self._gave_up else self._lazily(workload, model)
        if lazily is None:
            self._gave_up.add(model.name)
        return _last_or_longest(found, first, lazily or self._built(workload, model, None, most))

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
        return _Explorer(self, workload, model, few, most, is_thin=is_thin).run()

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

    def _in_phases(self, history: History) -> PhasedCheck:
        if self._phased is None:
            self._phased = phased_check(self._check, self.checked, history)
        return self._phased

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


def _failure(crashed: CrashImage, violation: Violation) -> Failure:
    return Failure(crashed.crashes, crashed.entries, crashed.key[1], violation)


def _last_or_longest(*explorations: Exploration) -> Exploration:
    """Return the last exploration; if it was stopped without a failure, the one with most states.

    The others had none either, so the states of that one have passed.
    """
    last = explorations[-1]
    if not last.stopped or not last.safe:
        return last
    longest = max(explorations, key=lambda each: each.states)
    return replace(longest, exhaustive=False, stopped=True)


class _Explorer:
    """One exploration; ``result`` grows while it runs."""

    def __init__(
        self,
        judge: Judge,
        workload: RecordedWorkload,
        model: PersistenceModel,
        few: int | None,
        most: int | None,
        *,
        is_thin: bool,
    ) -> None:
        limits = judge.limits
        if few is not None:
            limits = replace(limits, states_per_point=min(few, limits.states_per_point))
        self.result = Exploration(model, workload, judge)
        self._judge = judge
        self._results = judge.results(workload.history)
        self._history = workload.history
        self._nested = limits.nested
        self._ends_at_sample = few is not None
        self._checks = None if most is None else EvenShare(most, len(workload.journal))
        self._journals = Journals(
            workload.history,
            limits,
            self._is_new,
            self._checks,
            is_thin=is_thin,
            is_decided=self._is_decided,
        )
        self._visited_depth: dict[Key, int] = {}
        self._checked: set[Key] = set()
        # The place of each failed image among the failures.
        self._failed: dict[Key, int] = {}
        self._tick = Ticker(judge.tick, self.result)
        self._batch: list[CrashImage] = []

    def run(self) -> Exploration:
        result = self.result
        try:
            self._check_all()
        except Stopped as stopped:
            result.stop(stopped.place)
            self._settle_checked()
        except HarnessError:
            result.stopped = True
            self._settle_checked()
            self._judge.unfinished = self._ended()
            raise
        return self._ended()

    def _settle_checked(self) -> None:
        """Count those images of the last batch that were checked."""
        self._settle_all([crashed for crashed in self._batch if crashed in self._results])

    def _ended(self) -> Exploration:
        result = self.result
        result.built = self._journals.built
        result.exhaustive = self._journals.exhaustive and not result.stopped
        result.failures.sort(key=lambda failure: failure.simplicity)
        return result

    def _check_all(self) -> None:
        result, judge, batch = self.result, self._judge, self._batch
        size = min(_FIRST_BATCH * judge.processes, judge.most_in_batch)
        for crashed in self._journals.crashes(result.workload.journal, result.model):
            if self._is_sampled_in_vain():
                break
            if not self._register(crashed):
                continue
            if judge.most_in_batch == 1:
                self._settle(crashed)
                continue
            batch.append(crashed)
            if len(batch) >= size:
                start = time.monotonic()
                self._settle_batch()
                if time.monotonic() - start < _QUICK_S:
                    size = min(2 * size, judge.most_in_batch)
        self._settle_batch()

    def _is_decided(self, operation: int) -> bool:
        """Return whether an image has failed by the first operation at which states are left out.

        The checks of the further ones, which are to show other failures, are fewer then.
        """
        if self._checks is None:
            return False
        self._settle_batch()
        if self.result.failures:
            self._checks.begin_again(MOST_FIRST_CHECKS, operation)
        return bool(self.result.failures)

    def _is_sampled_in_vain(self) -> bool:
        """Return whether a sample has begun that is not wanted unless an image has failed."""
        if not self._ends_at_sample or self._journals.exhaustive or self.result.failures:
            return False
        self._settle_batch()
        return not self.result.failures

    def _is_new(self, key: Key, depth: int) -> bool:
        """Return whether an image must be checked.

        An image that was checked after more crashes is checked again if its recovery may now
        be crashed as well, or if it has failed.
        """
        self._tick()
        seen = self._visited_depth.get(key)
        return seen is None or (depth < seen and depth <= self._nested)

    def _register(self, crashed: CrashImage) -> bool:
        """Note an image to be checked; return False if it was registered before."""
        self._tick.operation = crashed.crashes[0].operation
        self._tick()
        key, depth = crashed.key, len(crashed.crashes)
        seen = self._visited_depth.get(key)
        if seen is not None and not (depth < seen and depth <= self._nested):
            return False
        self._visited_depth[key] = depth
        if self._checks is not None:
            self._checks.spend(1)
        return True

    def _settle_batch(self) -> None:
        """Check registered images of the workload, several at a time."""
        self._results.add(self._batch, self.result.model, self._tick)
        self._settle_all(self._batch)
        self._batch.clear()

    def _settle_all(self, images: Iterable[CrashImage]) -> None:
        for crashed in images:
            self._settle(crashed)

    def _settle(self, crashed: CrashImage) -> None:
        """Check one registered image, and count it."""
        try:
            violation = self._check_and_crash(crashed) if self._nested else self._check(crashed)
        except Stopped as stopped:
            if stopped.place is not None and self.result.interrupted is None:
                ended = UnreadableAfterCrash("the check was interrupted")
                self.result.interrupted = _failure(crashed, ended)
            raise
        if violation is not None:
            self._fail(crashed, violation)

    def _check(self, crashed: CrashImage) -> Violation | None:
        if crashed not in self._results:
            self._results.add([crashed], self.result.model)
        self._count(crashed)
        return self._results[crashed]

    def _count(self, crashed: CrashImage) -> None:
        self._checked.add(crashed.key)
        self.result.states = len(self._checked)

    def _fail(self, crashed: CrashImage, violation: Violation) -> None:
        """Add a failure; if its image has failed after more crashes, it replaces that one."""
        failure = _failure(crashed, violation)
        failures = self.result.failures
        place = self._failed.setdefault(crashed.key, len(failures))
        if place < len(failures):
            failures[place] = failure
        elif place == len(failures):
            self.result.fail(failure)

    def _check_and_crash(self, crashed: CrashImage) -> Violation | None:
        """Check an image; crash a check that passes and writes, which is a recovery."""
        disk = Disk(crashed.image, self.result.model)
        violation = self._judge.checked(disk, self._history.known(crashed.entries))
        self._count(crashed)
        if violation is None and len(crashed.crashes) <= self._nested and disk.journal:
            for nested in self._journals.crashes(
                disk.journal, disk.model, crashed.crashes, crashed.entries
            ):
                if self._register(nested):
                    self._settle(nested)
        return violation
