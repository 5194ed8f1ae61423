"""The runtime crash machine: how often a second it crashes the whole runtime and recovers it.

Seconds are those of the processor: the goals are for one core, and nothing here waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import process_time
from typing import Final

from hypothesis import HealthCheck, Phase, settings

from benchmarks.row import Row
from powercut.drivers.hypothesis_driver import fuzz
from powercut.drivers.seeded_run import SeededRun
from powercut.machines.runtime import runtime
from powercut.tally import Tally
from sim.disk.persistence import POSIX

_STEPS: Final = 30
_RUNS: Final = 40
_ROUNDS: Final = 5
_HYPOTHESIS_GOAL: Final = 100
_SEEDED_GOAL: Final = 500
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
    """Yield the row of Hypothesis and the row of the seeded driver, on one core each."""
    drawn = [_drawn_rate() for _ in range(_ROUNDS)]
    yield Row(
        "runtime crash and recover / s, Hypothesis", median(drawn), _HYPOTHESIS_GOAL, "/s", ">=",
        1.0, f"{_RUNS} runs of {_STEPS} steps, posix; beside the goal",
    )  # fmt: skip
    rates = [_seeded_rate(number * _RUNS) for number in range(_ROUNDS)]
    yield Row(
        "runtime crash and recover / s, seeded", median(rates), _SEEDED_GOAL, "/s", ">=", 1.0,
        f"{_ROUNDS * _RUNS} runs of {_STEPS} steps, posix; beside the goal",
    )  # fmt: skip


def _drawn_rate() -> float:
    """Return crashes in a second under Hypothesis; what the machine finds is raised."""
    start = process_time()
    campaign = fuzz(runtime, POSIX, _BUDGET)
    seconds = process_time() - start
    if campaign.findings:
        raise campaign.findings[0].failure
    return _crashes(campaign.tally) / seconds


def _seeded_rate(first: int) -> float:
    """Return crashes in a second over the runs from ``first`` on."""
    tally = Tally()
    start = process_time()
    for seed in range(first, first + _RUNS):
        machine, failure = SeededRun(runtime, POSIX, seed, _STEPS).run()
        if failure is not None:
            raise failure
        tally.add(machine.tally)
    return _crashes(tally) / (process_time() - start)


def _crashes(tally: Tally) -> int:
    return tally.kills + tally.power_cuts
