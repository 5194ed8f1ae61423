"""The shrinker begins at the run that failed, and ends at the same small one every time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import pytest
from hypothesis.internal.conjecture.choice import ChoiceT
from hypothesis.internal.conjecture.data import ConjectureData

from crash_tests.targets.atomic_file import atomic_file
from powercut.fuzz.action import Action
from powercut.fuzz.drivers.replay_driver import record
from powercut.fuzz.drivers.seeded_run import SeededRun
from powercut.fuzz.finding import name_of
from powercut.fuzz.reduction import shrinker
from powercut.fuzz.reduction.retelling import Trial, reduced, witnessed
from powercut.fuzz.reduction.shorten import shorten
from powercut.fuzz.reduction.shrinker import _answers, _Attempt, _simplest, shrink
from powercut.fuzz.target import AnyTarget
from powercut.fuzz.target_run import TargetRun
from sim.choices import PlainChoices
from sim.disk.crash.persistence import POSIX
from sim.errors import HarnessError
from tests.unit.cli.command_line import REGISTRY, careless_file

PATIENCE = 600
"""Seconds: in no test does the clock decide."""


@cache
def failing_runs() -> list[SeededRun]:
    runs = (SeededRun(careless_file, POSIX, seed, 30) for seed in range(10))
    return [run for run in runs if run.run()[1] is not None]


@cache
def shrunk_runs() -> list[tuple[SeededRun, TargetRun, Exception]]:
    return [(run, *shrink(run, PATIENCE)) for run in failing_runs()]


def told(run: SeededRun) -> Trial:
    target_run = run.start()
    return witnessed(target_run, run.sources(target_run))


def performed(run: SeededRun, trial: Trial, choices: Sequence[ChoiceT]) -> _Attempt:
    attempt = _Attempt(run.start(), len(trial.steps))
    attempt.perform(ConjectureData.for_choices(choices))
    return attempt


def shortlex(choices: Sequence[ChoiceT]) -> tuple[int, Sequence[ChoiceT]]:
    """What Hypothesis makes smaller: shorter ones first, then those with lower answers."""
    return len(choices), tuple(choices)


def actions(target_run: TargetRun) -> list[Action]:
    return [step.action for step in target_run.steps]


# -- what is handed over -----------------------------------------------------------------


def test_answers_that_are_handed_to_hypothesis_repeat_the_failure() -> None:
    for run in failing_runs():
        trial = told(run)
        attempt = performed(run, trial, _answers(trial))
        assert actions(attempt.target_run) == actions(trial.target_run)
        assert str(attempt.failure) == str(trial.failure)


def test_hypothesis_gives_back_a_smaller_run_that_fails_in_the_same_way() -> None:
    for run in failing_runs()[:3]:
        trial = reduced(told(run), run.start, time.process_time() + PATIENCE)
        smallest = _simplest(trial, run.start, time.process_time() + PATIENCE)
        assert smallest is not None
        assert shortlex(smallest) < shortlex(_answers(trial))
        attempt = performed(run, trial, smallest)
        assert attempt.failure is not None
        assert trial.fails_as(name_of(attempt.failure))


def test_hypothesis_has_so_many_runs_and_gives_back_the_simplest_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = longest_failing_run()
    trial = told(run)
    made: list[AnyTarget] = []

    def counted() -> AnyTarget:
        made.append(careless_file())
        return made[-1]

    monkeypatch.setattr(shrinker, "MOST_RUNS", 20)
    start = replace(run, make_target=counted).start
    smallest = _simplest(trial, start, time.process_time() + PATIENCE)

    assert len(made) == 20
    assert smallest is not None
    assert shortlex(smallest) < shortlex(_answers(trial))


# -- what comes of it --------------------------------------------------------------------


def test_every_failing_run_shrinks_to_a_few_steps_that_fail_in_the_same_way() -> None:
    assert shrunk_runs()
    for run, target_run, failure in shrunk_runs():
        assert told(run).fails_as(name_of(failure))
        assert len(target_run.steps) <= 3


def test_in_a_shrunk_run_a_text_that_does_not_matter_is_the_simplest() -> None:
    # Steps are left out without Hypothesis; texts of thousands of characters would stay.
    simplest = TargetRun(careless_file).propose(PlainChoices())
    assert simplest.name == "write"
    for _, target_run, _ in shrunk_runs():
        first = target_run.steps[0].action
        assert simplest.plain() in (first.plain(), first.arguments.get("action"))


def test_shrinking_is_deterministic() -> None:
    run = failing_runs()[0]
    first, again = (record(target_run, careless_file, failure).plain()
                    for target_run, failure in (shrink(run), shrink(run)))  # fmt: skip
    assert first == again


def longest_failing_run() -> SeededRun:
    return max(failing_runs(), key=lambda run: len(run.run()[0].steps))


def test_without_time_the_run_is_told_as_it_was() -> None:
    run = longest_failing_run()
    target_run, failure = run.run()
    hurried, told = shrink(run, seconds=0)
    assert actions(hurried) == actions(target_run)
    assert str(told) == str(failure)


def test_when_time_is_up_nothing_more_is_tried() -> None:
    run = longest_failing_run()
    target_run, failure = shrink(run, seconds=1e-9)
    assert actions(target_run) == actions(run.run()[0])
    assert shorten(target_run, careless_file, failure, time.process_time()) == (target_run, failure)


def test_run_longer_than_hypothesis_takes_is_shortened_at_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = longest_failing_run()
    monkeypatch.setattr(shrinker, "_answers", lambda _: [False])
    target_run, failure = shrink(run)
    assert name_of(failure) == name_of(run.run()[1] or failure)
    assert len(target_run.steps) < len(run.run()[0].steps)


def test_run_that_passes_cannot_be_shrunk() -> None:
    with pytest.raises(HarnessError, match="only a failing run can be shrunk, and seed=3 passes"):
        shrink(SeededRun(atomic_file, POSIX, 3, 5))


def test_hole_in_the_runtime_that_the_swarm_finds_becomes_a_story_of_a_few_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_target = REGISTRY.mutant("R7").mutant.target
    assert callable(make_target)
    runs = (SeededRun(make_target, POSIX, seed, 30, swarm=True) for seed in range(20))
    run = next(run for run in runs if run.run()[1] is not None)
    handed: list[tuple[Trial, Sequence[ChoiceT] | None]] = []

    def noted(
        trial: Trial, start: Callable[[], TargetRun], deadline: float
    ) -> Sequence[ChoiceT] | None:
        handed.append((trial, _simplest(trial, start, deadline)))
        return handed[-1][1]

    monkeypatch.setattr(shrinker, "_simplest", noted)
    target_run, failure = shrink(run, PATIENCE)

    ((trial, smallest),) = handed
    assert smallest is not None
    assert shortlex(smallest) < shortlex(_answers(trial))
    assert told(run).fails_as(name_of(failure))
    assert len(target_run.steps) <= 8
