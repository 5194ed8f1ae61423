"""The shrinker begins at the run that failed, and ends at the same small one every time."""

from __future__ import annotations

import pytest

from powercut.drivers.replay_driver import record
from powercut.drivers.seeded_run import SeededRun
from powercut.drivers.shrinker import shrink
from powercut.finding import name_of
from powercut.machines.atomic_file import atomic_file
from sim.disk.persistence import POSIX
from sim.errors import HarnessError
from tests.unit.cli.command_line import careless_file


def failing_runs() -> list[SeededRun]:
    runs = (SeededRun(careless_file, POSIX, seed, 30) for seed in range(10))
    return [run for run in runs if run.run()[1] is not None]


def test_every_failing_run_shrinks_to_a_few_steps_that_fail_in_the_same_way() -> None:
    runs = failing_runs()
    assert runs
    for run in runs:
        failure = run.run()[1]
        assert failure is not None
        machine, shrunk = shrink(run)
        assert name_of(shrunk) == name_of(failure)
        assert len(machine.steps) <= 3


def test_shrinking_is_deterministic() -> None:
    run = failing_runs()[0]
    first, again = (record(machine, careless_file, failure).plain()
                    for machine, failure in (shrink(run), shrink(run)))  # fmt: skip
    assert first == again


def longest_failing_run() -> SeededRun:
    return max(failing_runs(), key=lambda run: len(run.run()[0].steps))


def test_without_time_the_run_is_told_as_it_was() -> None:
    run = longest_failing_run()
    machine, failure = run.run()
    hurried, told = shrink(run, seconds=0)
    assert [step.action for step in hurried.steps] == [step.action for step in machine.steps]
    assert str(told) == str(failure)


def test_run_longer_than_hypothesis_takes_is_shortened_at_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = longest_failing_run()
    monkeypatch.setattr("powercut.drivers.shrinker._answers", lambda _: [False])
    machine, failure = shrink(run)
    assert name_of(failure) == name_of(run.run()[1] or failure)
    assert len(machine.steps) < len(run.run()[0].steps)


def test_run_that_passes_cannot_be_shrunk() -> None:
    with pytest.raises(HarnessError, match="only a failing run can be shrunk, and seed=3 passes"):
        shrink(SeededRun(atomic_file, POSIX, 3, 5))
