"""The explorer of built images: checks every crash image of a workload, each distinct one once."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final, Protocol

from oracles.history import History, Known
from oracles.violation import UnreadableAfterCrash, Violation
from powercut.explorer.even_share import EvenShare
from powercut.explorer.image_results import ImageResults
from powercut.explorer.journals import CrashImage, Journals, Key
from powercut.explorer.limits import Limits
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.recovery_results import Recovered
from powercut.explorer.ticker import Stopped, Ticker
from powercut.explorer.verdicts import Checker, Exploration, Failure
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import PersistenceModel
from sim.errors import HarnessError

_FIRST_BATCH: Final = 4
_QUICK_S: Final = 1.0
"""A batch that took less time may be followed by a larger one."""

MOST_FIRST_CHECKS: Final = 512
"""Images that are checked before the lazy engine is tried, a few of each crash point."""

MOST_ENDLESS: Final = 8
"""Images of an exploration on which the check does not end; the others are left out."""


class ImageChecker(Checker, Protocol):
    """Checks built images, ``most_in_batch`` at a time in ``processes`` processes.

    ``unfinished`` is the exploration that a ``HarnessError`` of the check has ended.
    """

    limits: Limits
    processes: int
    most_in_batch: int
    unfinished: Exploration | None

    @property
    def endless(self) -> int:
        """The number of checks that did not end in their time."""
        ...

    def tick(self, found: Exploration, operation: int) -> bool:
        """Return whether there is time for another check; called several times a second."""
        ...

    def results(self, history: History) -> ImageResults:
        """Return the results of the check on images, which grow."""
        ...

    def recovered(self, crashed: CrashImage, known: Known, model: PersistenceModel) -> Recovered:
        """Check an image, and return the operations too; raises ``Stopped`` if interrupted."""
        ...


class _Enough(Exception):
    """The checks that did not end are enough for a verdict."""


class BuiltExplorer:
    """One exploration; ``result`` grows while it runs."""

    def __init__(
        self,
        judge: ImageChecker,
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
        self._ticker = Ticker(judge.tick, self.result)
        self._endless = judge.endless
        self._batch: list[CrashImage] = []

    def run(self) -> Exploration:
        result = self.result
        try:
            self._check_all()
        except Stopped as stopped:
            result.stop(stopped.place)
            self._settle_checked()
        except _Enough:
            self._journals.exhaustive = False
            self._settle_checked()
            result.endless = self._judge.endless - self._endless
            # A fork that has counted its check may not have sent the violation yet.
            result.stopped = result.safe
        except HarnessError:
            result.stopped = True
            self._settle_checked()
            self._judge.unfinished = self._ended()
            raise
        return self._ended()

    def _tick(self) -> None:
        """Raise ``Stopped`` if the time is over, ``_Enough`` if too many checks have not ended."""
        self._ticker()
        if self._judge.endless - self._endless >= MOST_ENDLESS:
            raise _Enough

    def _settle_checked(self) -> None:
        """Count those images of the last batch that were checked."""
        for crashed in self._batch:
            if crashed in self._results:
                self._settle(crashed)

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
            if self._nested:
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
        self._ticker.operation = crashed.crashes[0].operation
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
        """Check registered images of the workload, several at a time if there are processes."""
        if self._judge.processes > 1:
            self._results.add(self._batch, self.result.model, self._tick)
        for crashed in self._batch:
            self._settle(crashed)
        self._batch.clear()

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
            self._results.add([crashed], self.result.model, self._tick)
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
        model = self.result.model
        known = self._history.known(crashed.entries)
        violation, operations = self._judge.recovered(crashed, known, model)
        self._count(crashed)
        if violation is None and len(crashed.crashes) <= self._nested and operations:
            for nested in self._journals.crashes(
                Journal(crashed.image, operations), model, crashed.crashes, crashed.entries
            ):
                if self._register(nested):
                    self._settle(nested)
        return violation


def _failure(crashed: CrashImage, violation: Violation) -> Failure:
    return Failure(crashed.crashes, crashed.entries, crashed.key[1], violation)
