"""The checker of one recovery of a recorded program, whose crashes were checked already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oracles.history import Known
from oracles.violation import Violation
from powercut.explorer.crash_state import image_at
from powercut.explorer.large_writes import fitting
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.verdicts import Checker, Exploration, Failure, InterruptedRecovery
from powercut.fuse.crash_search import MOST_SECTORS
from powercut.fuse.failures_left import FailuresLeft
from powercut.fuse.found_image import Key
from powercut.fuse.image_check import Checked
from powercut.fuse.recovery_crashes import Recovery
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.disk import Disk


class RecoveryChecker:
    """Explores a recovery with further barriers.

    ``judge`` is the checker of the program, and ``results`` has those of its checks so far.
    """

    takes_known = True

    def __init__(self, judge: Checker, recovery: Recovery, results: Mapping[Key, Checked]) -> None:
        self._judge = judge
        self._recovery = recovery
        self._results = results
        self._left: dict[str, FailuresLeft] = {}

    def explore(self, workload: RecordedWorkload, model: PersistenceModel) -> Exploration:
        """Return the failures that further barriers leave; the first workload has none."""
        if model.name not in self._left:
            fitted = fitting(model, workload.journal, MOST_SECTORS)
            self._left[model.name] = FailuresLeft(self._first(workload, fitted), {})
        return self._left[model.name].of(workload)

    def _first(self, workload: RecordedWorkload, model: PersistenceModel) -> Exploration:
        """Return the verdict on the recovery as it is."""
        images = self._recovery.found.get(model.name, ())
        checked = [each for each in images if each.key in self._results]
        verdict = Exploration(model, workload, self, states=len(checked))
        for each in checked:
            violation = self._results[each.key].violation
            if violation is not None:
                verdict.fail(Failure((each.crash,), each.entries, each.key[1], violation))
        return verdict

    def violation(self, disk: Disk, known: Known) -> Violation | None:
        """Check one disk."""
        return self._judge.violation(disk, known)

    def image(self, found: Exploration, failure: Failure) -> Image:
        """Return the disk of a failure."""
        return image_of_failure(found, failure)

    def is_over(self, found: Exploration) -> bool:
        """Return whether there is no time for another check."""
        return self._judge.is_over(found)

    def recoveries(self, found: Exploration, failure: Failure) -> Sequence[InterruptedRecovery]:
        """Return none: a recovery of a recovery is not crashed."""
        del found, failure
        return ()


def image_of_failure(found: Exploration, failure: Failure) -> Image:
    """Return the disk of a failure, which interrupts one recovery at most."""
    model, workload, (point, *others) = found.model, found.workload, failure.crashes
    for other, recovery in zip(others, found.checker.recoveries(found, failure), strict=True):
        model, workload, point = recovery.model, recovery.workload, recovery.in_journal(other)
    return image_at(workload.journal, model, point)
