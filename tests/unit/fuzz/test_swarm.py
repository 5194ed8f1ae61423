"""A swarm biases a run, and always leaves a possible action."""

from __future__ import annotations

from collections import Counter
from functools import partial
from types import MappingProxyType

import pytest

from powercut.fuzz.drivers.swarm import SeededRun, Swarm, SwarmChoices, draw_swarm
from powercut.fuzz.target_run import TargetRun
from sim.choices import SeededChoices
from sim.disk.crash.persistence import POSIX
from tests.unit.fuzz.broken import BootCounter
from tests.unit.fuzz.project import PROJECT
from tests.unit.fuzz.saved_file import SavedFileTarget, save, saved_file
from tests.unit.fuzz.target_laws import (
    check_kinds_left_out,
    check_kinds_of_crash,
    check_possible_actions,
    swarms,
)


def test_swarm_is_plain_data_on_one_line() -> None:
    swarm = Swarm(30, {"write": 6, "read": 0}, {"kind": (0,)})
    assert str(swarm) == "30 steps; write:6 read:0; kind only 0"


def test_every_kind_is_left_out_of_some_runs_except_the_simplest() -> None:
    check_kinds_left_out(saved_file)


def test_some_runs_only_kill_some_only_cut_power_and_some_do_not_crash() -> None:
    check_kinds_of_crash(saved_file)


def test_runs_are_mostly_of_the_usual_length_sometimes_short_rarely_long() -> None:
    run = TargetRun(saved_file)
    found = Counter(draw_swarm(SeededChoices(seed), run, 30).steps for seed in range(40_000))
    assert set(found) == {5, 30, 300, 1200}
    assert found[30] > found[5] > found[300] > found[1200]


def test_a_question_that_a_swarm_restricts_has_an_answer() -> None:
    class Sized(SavedFileTarget):
        features = MappingProxyType({"size": 2})

    answers = {swarm.answers.get("size") for swarm in swarms(partial(Sized, "sized", save))}
    assert answers == {None, (0,), (1,), (0, 1)}


@pytest.mark.parametrize("tag", PROJECT.config.targets)
def test_no_swarm_leaves_a_target_without_a_possible_action(tag: str) -> None:
    check_possible_actions(PROJECT.target(tag).make_target)


def perform(run: TargetRun, choices: SwarmChoices, steps: int) -> None:
    for _ in range(steps):
        run.perform(run.propose(choices), choices)


def test_kind_that_is_left_out_is_not_done_while_another_is_possible() -> None:
    run = TargetRun(saved_file)
    weights = {kind.name: int(kind.name == "write") for kind in run.kinds}
    perform(run, SwarmChoices(SeededChoices(1), Swarm(20, weights, {})), 20)
    assert {step.action.name for step in run.log.steps} == {"write"}


def test_any_kind_is_done_if_all_possible_ones_are_left_out() -> None:
    run = TargetRun(saved_file)
    weights = {kind.name: int(kind.name == "fault_off") for kind in run.kinds}
    choices = SwarmChoices(SeededChoices(1), Swarm(20, weights, {}))
    assert run.propose(choices).name != "fault_off"


def test_run_of_kills_alone_cuts_no_power() -> None:
    run = TargetRun(saved_file)
    weights = {kind.name: kind.weight for kind in run.kinds}
    perform(run, SwarmChoices(SeededChoices(1), Swarm(40, weights, {"kind": (0,)})), 40)
    assert run.tally.power_cuts == 0
    assert run.tally.kills > 5


def test_same_seed_gives_the_same_swarm_and_the_same_run() -> None:
    seeded = SeededRun(saved_file, POSIX, 5, 12, swarm=True, various=True)
    assert seeded.bias() == seeded.bias() != ""
    assert seeded.run().log == seeded.run().log


def test_long_run_releases_the_disks_of_early_crashes() -> None:
    steps = SeededRun(saved_file, POSIX, 1, 300).run().log.steps
    kept = [number for number, step in enumerate(steps, 1) if any(c.disk for c in step.crashes)]
    assert min(kept) > 200


def test_run_under_a_fault_plan_ends_without_faults_and_without_a_lifetime() -> None:
    plans: list[str] = []

    class Quiesced(SavedFileTarget):
        def quiesce(self) -> None:
            plans.append(self.fault_plan)

    make_target = partial(Quiesced, "saved-file", save)
    run = SeededRun(make_target, POSIX, 3, 1, "write * #1+ ENOSPC").run()
    assert run.log.steps[0].action.arguments == {"plan": "write * #1+ ENOSPC"}
    assert (run.failure, run.faults.on, plans) == (None, False, [""])
    assert not run.crash_runner.world.alive


def test_run_ends_with_a_recovery_that_changes_nothing() -> None:
    run = SeededRun(BootCounter, POSIX, 1, 0).run()
    assert run.log.broken == "NotIdempotent"
