"""Diagnosis of a failed run: the barriers without which its decisive power cut does harm.

A power cut is decisive if the run passes when that one loses nothing. The operations before it
are a recorded workload, whose states after the last operation are judged under every model by
repeating the run. So missing barriers are found and proven as those of a workload.
"""

from __future__ import annotations

import time
from math import inf
from typing import Final, NamedTuple

from oracles.history import History, HistoryEntry
from powercut.causes.cut_run import decisive, earliest
from powercut.causes.run_checker import RunChecker
from powercut.explorer.cause import Cause, Diagnosis
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.fuzz.lifetime_recorder import LifetimeRecorder
from powercut.fuzz.target_run import TargetRun
from powercut.place import Place
from sim.disk.crash.journal import Journal
from sim.disk.crash.persistence import MODELS

SECONDS: Final = 10
"""Processor time for one of several failures."""

REPLAY_SECONDS: Final = 60
"""Processor time for the only failure that a developer looks at."""

_PART_FOR_THE_MOMENT: Final = 0.3


class RunDiagnosis(NamedTuple):
    """The causes of a failed run. ``cause`` leads to its disk under its model.

    If none does, it is the first that fails under this model, or the first of all. The other causes
    need other survivors of the same power cut.
    """

    diagnosis: Diagnosis
    cause: Cause


def diagnose_run(
    failed: TargetRun, seconds: float = SECONDS, wall_seconds: float = inf
) -> RunDiagnosis | None:
    """Search the barriers that a failed run misses.

    It takes at most about ``seconds`` of processor time, and ``wall_seconds`` of the wall clock.

    Returns None if the run fails as well when no power cut loses anything. Raises ``OutOfTime``
    when the time is over.
    """
    end, wall_end = time.process_time() + seconds, time.monotonic() + wall_seconds

    def is_over(left: float = 0) -> bool:
        return time.process_time() >= end - left or time.monotonic() >= wall_end

    cut = decisive(failed)
    if cut is None:
        return None
    cut = earliest(cut, lambda: is_over(seconds * (1 - _PART_FOR_THE_MOMENT)))
    workload, checker = workload_before(cut.recorder, cut.power_cut), RunChecker(cut, is_over)
    found = {name: checker.explore(workload, model) for name, model in MODELS.items()}
    if all(each.safe for each in found.values()):
        return None
    diagnosis = diagnose(found)
    image, model = cut.image.digest(), failed.log.model

    def distance(cause: Cause) -> int:
        return 0 if cause.leads_to(image, model) else 1 if cause.failures.get(model) else 2

    return RunDiagnosis(diagnosis, min(diagnosis.causes, key=distance))


def workload_before(recorder: LifetimeRecorder, power_cut: int) -> RecordedWorkload:
    """Return the workload that power cut number ``power_cut`` of a run, from 1, ends.

    The return of an action or a recovery acknowledges it. A kill leaves the page cache and
    everything unsynced, so lifetimes that follow each other by kills have one journal, which
    begins where everything was durable.
    """
    last, _ = recorder.power_cuts[power_cut - 1]
    return workload_until(recorder, last)


def workload_until(recorder: LifetimeRecorder, last: int) -> RecordedWorkload:
    """Return the workload of lifetime ``last`` and those before it, up to a power cut."""
    numbers = recorder.since_power_cut(last)
    journal = Journal(recorder.boots[numbers[0]].disk.image)
    places: dict[int, Place] = {}
    for number in numbers:
        lifetime = recorder.boots[number]
        before = len(journal)
        journal.operations += lifetime.disk.journal
        places |= {before + each: place for each, place in lifetime.places.items()}
    entries = [
        HistoryEntry(recorder.before(call.lifetime) + call.end, True, call.text, call.place)
        for call in recorder.calls
        if call.lifetime in numbers and call.end is not None
    ]
    return RecordedWorkload(journal, History(lambda: len(journal), entries=entries), places)
