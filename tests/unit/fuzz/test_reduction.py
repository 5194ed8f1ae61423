"""Reduction begins at the run that failed, and ends at the same small one every time."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import count

import pytest
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.internal.conjecture.engine import ConjectureRunner

from oracles.violation import LostAck
from powercut.fuzz import conjecture
from powercut.fuzz.action import Action, ActionKind, Arguments, Json
from powercut.fuzz.conjecture import answers_of, run_drawn, simplified
from powercut.fuzz.drivers.swarm import SeededRun
from powercut.fuzz.reduction import any_failure, reduced, without_disturbances, without_steps
from powercut.fuzz.reproducer import record
from powercut.fuzz.run_log import NearestChoices, RecordedStep, Recorder
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_run import TargetRun
from sim.choices import (
    Choices,
    Chosen,
    Diverged,
    PlainChoices,
    ReplayChoices,
    SeededChoices,
)
from sim.disk.crash.persistence import POSIX
from tests.unit.fuzz.broken import UnsyncedCounter, careless, sound
from tests.unit.fuzz.project import PROJECT

PATIENCE = 600
"""Seconds: no test reaches this limit."""


@cache
def failed_runs() -> list[TargetRun]:
    runs = (SeededRun(careless, POSIX, seed, 30).run() for seed in range(10))
    return [run for run in runs if run.failure is not None]


@cache
def long_failed_run() -> TargetRun:
    """A swarm with few crashes, which fails after many steps; earlier seeds give none."""
    for seed in count(84):
        run = SeededRun(careless, POSIX, seed, 100, swarm=True).run()
        if run.failure is not None and len(run.log.steps) > 40:
            return run
    raise AssertionError("seeds never end")


@cache
def reduced_runs() -> list[tuple[TargetRun, TargetRun]]:
    return [(run, reduced(run, PATIENCE)) for run in failed_runs()]


def never() -> bool:
    return False


def actions(run: TargetRun) -> list[Action]:
    return [step.action for step in run.log.steps]


def shortlex(answers: Sequence[int | bool]) -> tuple[int, Sequence[int | bool]]:
    """The order in which Hypothesis shrinks: by length, then by value."""
    return len(answers), tuple(answers)


# -- the recorded answers ----------------------------------------------------------------


def test_nearest_choices_repeat_a_recorded_run() -> None:
    first = SeededRun(sound, POSIX, 7, 40, swarm=True).run()
    again = first.fresh()
    for step in first.log.steps:
        again.perform_nearest(step)
    again.abandon()
    assert again.log.steps == first.log.steps
    assert answers_of(again) == answers_of(first)


def test_answer_that_no_longer_fits_becomes_the_nearest() -> None:
    chosen = [Chosen("size", 0, 9, 9), Chosen("other", 0, 1, 1), Chosen("size", -9, 9, -3)]
    choices = NearestChoices(RecordedStep(Action("write", {}), chosen))
    assert choices.integer("size", 0, 5) == 5
    assert choices.integer("size", 2, 5) == 2
    assert choices.integer("size", 4, 5) == 4


def test_step_that_is_no_longer_possible_is_left_out() -> None:
    run = TargetRun(sound)
    for name in ("fault_off", "read"):
        run.perform_nearest(RecordedStep(Action(name, {}), [Chosen("action", 1, 9, 1)]))
    assert [action.name for action in actions(run)] == ["read"]


def test_kind_is_recorded_by_its_own_weight() -> None:
    kinds = [ActionKind(name, 5, lambda _: "done") for name in "abc"]
    chosen: list[Chosen] = []
    nearest = NearestChoices(RecordedStep(Action("b", {})))
    assert Recorder(nearest, chosen).kind("action", kinds) is kinds[1]
    assert chosen == [Chosen("action", 1, 15, 6)]
    with pytest.raises(Diverged):
        NearestChoices(RecordedStep(Action("d", {}))).kind("action", kinds)


def test_answers_that_are_handed_to_hypothesis_repeat_the_failure() -> None:
    for run in failed_runs():
        again = run_drawn(run, ConjectureData.for_choices(answers_of(run)))
        assert again.log == run.log


# -- leaving out steps -------------------------------------------------------------------


def test_long_run_is_reduced_to_a_few_steps_that_fail_in_the_same_way() -> None:
    run = long_failed_run()
    shorter = without_steps(run, never)
    assert shorter.log.fails_like(run.log)
    assert len(shorter.log.steps) <= 4


def test_every_step_that_is_left_is_needed() -> None:
    run = reduced(long_failed_run(), PATIENCE)
    steps = run.log.steps
    for place in range(len(steps)):
        fewer = run.fresh()

        def perform_steps(fewer: TargetRun = fewer, place: int = place) -> None:
            for step in (*steps[:place], *steps[place + 1 :]):
                fewer.perform_nearest(step)

        fewer.complete(perform_steps)
        assert not fewer.log.fails_like(run.log)


def test_no_step_is_left_out_after_the_deadline() -> None:
    run = long_failed_run()
    assert without_steps(run, lambda: True) is run
    assert reduced(run, seconds=1e-9) is run
    assert reduced(run, PATIENCE, wall_seconds=0) is run


def test_fault_plan_of_the_campaign_is_left_out_if_it_is_not_needed() -> None:
    plan = "read * #99 EIO"
    runs = (SeededRun(careless, POSIX, seed, 30, plan).run() for seed in count())
    run = next(run for run in runs if run.failure is not None)
    assert actions(run)[0] == Action("fault_on", {"plan": plan})
    assert answers_of(run)
    assert "fault_on" not in [action.name for action in actions(reduced(run, PATIENCE))]


# -- leaving out crashes and faults ------------------------------------------------------


WRITE: dict[str, Json] = {"name": "write", "arguments": {"text": "Ada"}}


def failed_by(make_target: MakeTarget, *performed: Action) -> TargetRun:
    """Return a failed run of these actions."""
    for seed in count():
        run, choices = TargetRun(make_target), SeededChoices(seed)

        def perform_steps(run: TargetRun = run, choices: Choices = choices) -> None:
            for action in performed:
                run.perform(action, choices)

        if run.complete(perform_steps) is not None:
            return run
    raise AssertionError("seeds never end")


def crashed(*kinds: str) -> Action:
    """Return a write that is crashed behind its return, and so is each recovery but the last."""
    crashes: list[Json] = [
        {"operation": 0, "phase": "after", "kind": kind, "kept": 0} for kind in kinds
    ]
    return Action("crash_and_recover", {"action": WRITE, "crashes": crashes})


def test_step_fault_and_crash_that_are_not_needed_are_left_out() -> None:
    fault = Action("with_fault", {"action": WRITE, "plan": "read /none #1 EIO"})
    run = failed_by(careless, fault, crashed("kill"), crashed("kill", "power-cut", "kill"))
    smallest = without_disturbances(run, never)
    assert actions(smallest) == [crashed("power-cut")]
    assert smallest.log.fails_like(run.log)


class Short(UnsyncedCounter):
    """Fails by a write that a fault cuts short; a second action must be there before."""

    is_ready = False

    def actions(self) -> Sequence[ActionKind]:
        return [ActionKind("open", 1, self._open), ActionKind("put", 1, self._put)]

    def _open(self, _arguments: Arguments) -> str:
        self.is_ready = True
        return "opened"

    def _put(self, _arguments: Arguments) -> str:
        file = self._process.open("/f", os.O_CREAT | os.O_WRONLY)
        with suppress(OSError):
            if self._process.write(file, b"ab") < 2 and self.is_ready:
                raise LostAck("a byte is lost")
        return "put"


def test_fault_that_is_needed_stays_without_its_other_rules() -> None:
    def with_fault(name: str, plan: str) -> Action:
        return Action("with_fault", {"action": {"name": name, "arguments": {}}, "plan": plan})

    short = "write /f #1 short:1B"
    run = failed_by(
        Short,
        with_fault("open", "read /f #1 EIO"),
        with_fault("put", f"write /f #9 ENOSPC; {short}; write /f #2 ENOSPC"),
    )
    assert actions(without_disturbances(run, never)) == [
        Action("open", {}),
        with_fault("put", short),
    ]


def test_nothing_is_left_out_after_the_deadline() -> None:
    run = failed_by(careless, crashed("kill", "power-cut"))
    assert without_disturbances(run, lambda: True) is run


def test_whole_reduction_leaves_out_what_hypothesis_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conjecture, "answers_of", lambda _: [False])
    run = failed_by(careless, crashed("kill", "power-cut", "kill"))
    assert actions(reduced(run, PATIENCE)) == [crashed("power-cut")]


# -- Hypothesis --------------------------------------------------------------------------


def test_hypothesis_gives_back_a_smaller_run_that_fails_in_the_same_way() -> None:
    for failed in failed_runs()[:3]:
        run = without_steps(failed, never)
        smallest = simplified(run, never, any_failure)
        assert smallest.log.fails_like(run.log)
        assert shortlex(answers_of(smallest)) < shortlex(answers_of(run))


def test_hypothesis_uses_so_many_runs_and_gives_back_the_simplest_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = max(failed_runs(), key=lambda run: len(run.log.steps))
    drawn: list[TargetRun] = []

    def counted(like: TargetRun, data: ConjectureData) -> TargetRun:
        drawn.append(like)
        return run_drawn(like, data)

    monkeypatch.setattr(conjecture, "MOST_RUNS", 20)
    monkeypatch.setattr(conjecture, "run_drawn", counted)
    smallest = simplified(run, never, any_failure)
    # The last one repeats the result.
    assert len(drawn) == 21
    assert shortlex(answers_of(smallest)) < shortlex(answers_of(run))


@pytest.mark.parametrize("missing", ["Hypothesis", "a private name of it"])
def test_without_hypothesis_steps_are_left_out_all_the_same(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "powercut.fuzz.conjecture")
    if missing == "Hypothesis":
        monkeypatch.setitem(sys.modules, "hypothesis", None)
    else:
        monkeypatch.delattr(ConjectureRunner, "new_shrinker")
    with pytest.raises(ImportError):
        import_module("powercut.fuzz.conjecture")
    run = long_failed_run()
    shorter = reduced(run, PATIENCE)
    assert shorter.log.fails_like(run.log)
    assert len(shorter.log.steps) <= 4


# -- the whole reduction -----------------------------------------------------------------


def test_every_failed_run_is_reduced_to_a_few_steps_that_fail_in_the_same_way() -> None:
    assert reduced_runs()
    for run, smallest in reduced_runs():
        assert smallest.log.fails_like(run.log)
        assert len(smallest.log.steps) <= 3


def test_text_that_does_not_matter_becomes_the_simplest() -> None:
    # Leaving out steps changes no text, and some have thousands of characters.
    simplest = TargetRun(careless).propose(PlainChoices())
    assert simplest.name == "write"
    for _, smallest in reduced_runs():
        first = actions(smallest)[0]
        assert simplest.plain() in (first.plain(), first.arguments.get("action"))


@pytest.mark.parametrize("steps", [2, 6])
def test_only_a_run_that_is_wanted_is_the_result(steps: int) -> None:
    run = long_failed_run()
    smallest = reduced(run, PATIENCE, is_wanted=lambda run: len(run.log.steps) >= steps)
    assert len(smallest.log.steps) == steps
    assert smallest.log.fails_like(run.log)


def test_reduction_is_deterministic() -> None:
    run = failed_runs()[0]
    assert record(reduced(run)).plain() == record(reduced(run)).plain()


def test_run_that_is_too_long_for_hypothesis_is_reduced_at_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = max(failed_runs(), key=lambda run: len(run.log.steps))
    monkeypatch.setattr(conjecture, "answers_of", lambda _: [False])
    smallest = reduced(run)
    assert smallest.log.fails_like(run.log)
    assert len(smallest.log.steps) < len(run.log.steps)


class Opened(UnsyncedCounter):
    """Cannot choose arguments before it is opened, and then always fails."""

    crash_free = True
    is_open = False

    def actions(self) -> Sequence[ActionKind]:
        return [ActionKind("open", 1, self._open), ActionKind("put", 1, self._put, self._choose)]

    def _open(self, _arguments: Arguments) -> str:
        self.is_open = True
        return "opened"

    def _choose(self, _choices: Choices) -> Arguments:
        if not self.is_open:
            raise ValueError("not open")
        return {}

    def _put(self, _arguments: Arguments) -> str:
        raise LostAck("gone")


def test_state_in_which_the_target_cannot_prepare_a_step_ends_only_an_attempt() -> None:
    run = TargetRun(Opened)

    def perform_steps() -> None:
        for number in (1, 1, 2):
            choices = ReplayChoices([Chosen("action", 1, 2, number)])
            run.perform(run.propose(choices), choices)

    run.complete(perform_steps)
    assert [action.name for action in actions(reduced(run))] == ["open", "put"]


def test_planted_bug_that_the_swarm_finds_becomes_a_story_of_a_few_steps() -> None:
    with PROJECT.mutant("no-directory-fsync").planted() as make_target:
        runs = (SeededRun(make_target, POSIX, seed, 30, swarm=True).run() for seed in range(20))
        run = next(run for run in runs if run.failure is not None)
        smallest = reduced(run, PATIENCE)
    assert smallest.log.fails_like(run.log)
    assert len(smallest.log.steps) <= 3
