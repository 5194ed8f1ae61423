"""Judges the states of one power cut of a failed run, by repeating the run with each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from oracles.history import Known
from oracles.violation import Violation
from powercut.causes.cut_run import CutRun
from powercut.explorer.check_violation import violation_of
from powercut.explorer.crash_state import image_at
from powercut.explorer.journals import Journals
from powercut.explorer.limits import Limits
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.repair import OutOfTime
from powercut.explorer.verdicts import Exploration, Failure, InterruptedRecovery
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.disk import Disk

_LIMITS: Final = Limits(states_per_point=128, samples=32)


class RunChecker:
    """A checker of the workload that the power cut of a run ends.

    Its check boots the target from a disk in place of the one that the power cut left, goes on
    as the run did, and finishes. An equal disk is checked once, whatever models or barriers lead
    to it. Raises ``OutOfTime`` instead of a check when ``is_over`` returns True.
    """

    takes_known = False

    def __init__(self, cut: CutRun, is_over: Callable[[], bool]) -> None:
        self._cut = cut
        self._has_ended = is_over
        self._results: dict[str, Violation | None] = {}

    def explore(self, workload: RecordedWorkload, model: PersistenceModel) -> Exploration:
        """Check every state of a power cut after the last operation of a workload."""
        found = Exploration(model, workload, self)
        seen: set[object] = set()
        journals = Journals(workload.history, _LIMITS, lambda key, _depth: key not in seen)
        for crashed in journals.power_cuts_at_the_end(workload.journal, model):
            seen.add(crashed.key)
            found.states += 1
            violation = self.violation_of(crashed.image)
            if violation is not None:
                image = crashed.image.digest()
                found.fail(Failure(crashed.crashes, crashed.entries, image, violation))
        found.built = journals.built
        found.exhaustive = journals.exhaustive
        found.failures.sort(key=lambda failure: failure.simplicity)
        return found

    def violation(self, disk: Disk, known: Known) -> Violation | None:
        """Check one disk."""
        del known
        return self.violation_of(disk.image)

    def is_over(self, found: Exploration) -> bool:
        """Return whether there is no time for another check."""
        del found
        return self._has_ended()

    def image(self, found: Exploration, failure: Failure) -> Image:
        """Return the disk of a failure."""
        return image_at(found.workload.journal, found.model, failure.crashes[0])

    def recoveries(self, found: Exploration, failure: Failure) -> Sequence[InterruptedRecovery]:
        """Return none: the failures of a power cut have one crash."""
        assert len(failure.crashes) == 1, failure
        del found
        return ()

    def violation_of(self, image: Image) -> Violation | None:
        """Repeat the run with this disk, and return the violation in which it ends, or None."""
        digest = image.digest()
        if digest not in self._results:
            if self._has_ended():
                raise OutOfTime
            failure = self._cut.failure(image)
            self._results[digest] = None if failure is None else violation_of(failure)
        return self._results[digest]
