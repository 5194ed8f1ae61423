"""A run retold with steps left out still knows which answers lead to it."""

from __future__ import annotations

import time
from functools import cache
from itertools import count

from crash_tests.targets.atomic_file import atomic_file
from powercut.fuzz.drivers.seeded_run import SeededRun
from powercut.fuzz.finding import name_of
from powercut.fuzz.reduction.retelling import Retelling, Told, reduced, witnessed
from powercut.fuzz.reduction.shrinker import shrink
from powercut.fuzz.target_run import TargetRun
from sim.disk.crash.persistence import POSIX
from tests.unit.cli.command_line import careless_file


@cache
def long_failing_run() -> SeededRun:
    """A run that fails after many steps: the crashes of its kind are few."""
    runs = (SeededRun(careless_file, POSIX, seed, 100, swarm=True) for seed in count())
    for run in runs:
        target_run, failure = run.run()
        if failure is not None and len(target_run.steps) > 40:
            return run
    raise AssertionError("there are runs without end")


def test_told_answers_repeat_the_run() -> None:
    run = SeededRun(atomic_file, POSIX, 7, 40, swarm=True)
    target_run = run.start()
    first = witnessed(target_run, run.sources(target_run))
    again = witnessed(run.start(), [Retelling(step.told) for step in first.steps])
    assert [step.action for step in again.target_run.steps] == [
        step.action for step in first.target_run.steps
    ]
    assert [step.drawn for step in again.steps] == [step.drawn for step in first.steps]


def test_answer_that_no_longer_fits_becomes_the_nearest() -> None:
    choices = Retelling([Told("size", 9), Told("other", 1), Told("size", -3)])
    assert choices.integer("size", 0, 5) == 5
    assert choices.integer("size", 2, 5) == 2
    assert choices.integer("size", 4, 5) == 4


def test_step_that_is_no_longer_possible_is_left_out() -> None:
    steps = [[Told("action", 0, "fault_off")], [Told("action", 0, "read")]]
    trial = witnessed(TargetRun(atomic_file), [Retelling(told) for told in steps])
    assert [step.action.name for step in trial.target_run.steps] == ["read"]


def test_long_run_is_reduced_to_a_few_steps_that_fail_in_the_same_way() -> None:
    run = long_failing_run()
    target_run = run.start()
    trial = witnessed(target_run, run.sources(target_run))
    assert trial.failure is not None
    assert len(trial.steps) > 40
    shorter = reduced(trial, run.start, time.process_time() + 60)
    assert shorter.fails_as(name_of(trial.failure))
    assert len(shorter.steps) <= 4
    shrunk, failure = shrink(run)
    assert name_of(failure) == name_of(trial.failure)
    assert len(shrunk.steps) <= len(shorter.steps)


def test_reduction_stops_when_time_is_up() -> None:
    run = long_failing_run()
    target_run = run.start()
    trial = witnessed(target_run, run.sources(target_run))
    assert reduced(trial, run.start, time.process_time()) is trial
