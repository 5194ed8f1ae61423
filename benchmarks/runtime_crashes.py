"""Crashes, recoveries and full checks of the whole runtime per second.

Under Hypothesis the actions between two crashes are part of the time; ``explore`` runs them
once. Seconds are processor time: the goals are for one core.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import median
from time import process_time
from typing import Final

from hypothesis import HealthCheck, Phase, settings

from benchmarks.row import Row
from crash_tests.targets.runtime import runtime
from crash_tests.workloads.runtime import runtime as workload
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine
from powercut.fuzz.drivers.hypothesis_driver import fuzz
from powercut.fuzz.memory import settled
from powercut.fuzz.tally import Tally
from sim.disk.crash.persistence import POSIX

_STEPS: Final = 30
_RUNS: Final = 120
_ROUNDS: Final = 3
_HYPOTHESIS_GOAL: Final = 100
_EXPLORED_GOAL: Final = 500
_EXPLORATIONS: Final = 3
_BUDGET: Final = settings(
    max_examples=_RUNS,
    stateful_step_count=_STEPS,
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=[HealthCheck.too_slow],
)


def rows() -> Iterator[Row]:
    """Yield the row of Hypothesis and the row of ``explore``, on one core each."""
    drawn = [_drawn_rate() for _ in range(_ROUNDS)]
    yield Row(
        "runtime crash and recover / s, Hypothesis", median(drawn), _HYPOTHESIS_GOAL, "/s", ">=",
        1.0, f"{_RUNS} runs of {_STEPS} steps, posix; beside the goal",
    )  # fmt: skip
    explored = [_explored_rate() for _ in range(_EXPLORATIONS)]
    yield Row(
        "runtime crash and recover / s, explored", median(explored), _EXPLORED_GOAL, "/s", ">=",
        1.0, "workload runtime, posix; beside the goal",
    )  # fmt: skip


def _drawn_rate() -> float:
    """Return crashes in a second under Hypothesis; a violation is raised."""
    start = process_time()
    campaign = fuzz(runtime, POSIX, _BUDGET)
    seconds = process_time() - start
    for finding in campaign.findings:
        assert finding.run.failure is not None
        raise finding.run.failure
    return _crashes(campaign.tally) / seconds


def _explored_rate() -> float:
    """Return the crashes of one small team of agents that were judged in a second."""
    with settled():
        start = process_time()
        limits = replace(workload.limits, engine=Engine.BRUTE)
        found = explore(workload.run, workload.check, POSIX, limits)
        seconds = process_time() - start
    if not found.safe:
        raise found.failures[0].violation
    return found.states / seconds


def _crashes(tally: Tally) -> int:
    return tally.kills + tally.power_cuts
