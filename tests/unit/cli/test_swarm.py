"""A swarm says what a run is about, and leaves the machine able to move."""

from __future__ import annotations

from collections import Counter

import pytest

from crash_tests.targets.atomic_file import atomic_file
from crash_tests.targets.runtime import runtime
from crash_tests.targets.targets import TARGETS
from powercut.fuzz.drivers.replay_driver import recorded
from powercut.fuzz.drivers.seeded_run import SeededRun
from powercut.fuzz.drivers.swarm import Swarm, SwarmChoices, draw_swarm
from powercut.fuzz.target_run import TargetRun
from sim.choices import SeededChoices
from sim.disk.crash.persistence import POSIX

SEEDS = range(300)


def swarms(steps: int = 30) -> list[Swarm]:
    target_run = TargetRun(runtime)
    return [draw_swarm(SeededChoices(seed), target_run, steps) for seed in SEEDS]


def test_swarm_is_plain_data_on_one_line() -> None:
    swarm = Swarm(30, {"write": 6, "read": 0}, {"kind": (0,)})
    assert str(swarm) == "30 steps; write:6 read:0; kind only 0"


def test_every_kind_is_left_out_of_some_runs_except_the_simplest() -> None:
    target_run = TargetRun(runtime)
    out = Counter(
        name for swarm in swarms() for name, weight in swarm.weights.items() if not weight
    )
    first, *others = (kind.name for kind in target_run.kinds)
    assert first not in out
    assert all(10 < out[name] < 200 for name in others)


def test_some_runs_only_kill_some_only_cut_power_and_some_do_not_crash() -> None:
    found = Counter(str(swarm.answers.get("kind")) for swarm in swarms())
    assert found["(0,)"] > 5
    assert found["(1, 2, 3)"] > 20
    assert found["None"] > 100
    assert any(not swarm.weights["crash_and_recover"] for swarm in swarms())


def test_runs_are_mostly_of_the_usual_length_sometimes_short_rarely_long() -> None:
    target_run = TargetRun(atomic_file)
    found = Counter(draw_swarm(SeededChoices(seed), target_run, 30).steps for seed in range(40_000))
    assert set(found) == {5, 30, 300, 1200}
    assert found[30] > found[5] > found[300] > found[1200]


@pytest.mark.parametrize("tag", TARGETS)
def test_no_swarm_brings_a_machine_to_a_standstill(tag: str) -> None:
    for seed in range(12):
        target_run, failure = SeededRun(TARGETS[tag], POSIX, seed, 12, swarm=True).run()
        assert failure is None
        assert len(target_run.steps) == 12


def test_kind_that_is_left_out_is_not_done_while_another_is_possible() -> None:
    target_run = TargetRun(atomic_file)
    weights = {kind.name: int(kind.name == "write") for kind in target_run.kinds}
    choices = SwarmChoices(SeededChoices(1), Swarm(20, weights, {}))
    for _ in range(20):
        target_run.perform(target_run.propose(choices), choices)
    assert {step.action.name for step in target_run.steps} == {"write"}


def test_where_nothing_that_is_in_is_possible_anything_is_done() -> None:
    target_run = TargetRun(atomic_file)
    weights = {kind.name: int(kind.name == "fault_off") for kind in target_run.kinds}
    choices = SwarmChoices(SeededChoices(1), Swarm(20, weights, {}))
    assert target_run.propose(choices).name != "fault_off"


def test_run_of_kills_alone_cuts_no_power() -> None:
    target_run = TargetRun(atomic_file)
    weights = {kind.name: kind.weight for kind in target_run.kinds}
    choices = SwarmChoices(SeededChoices(1), Swarm(40, weights, {"kind": (0,)}))
    for _ in range(40):
        target_run.perform(target_run.propose(choices), choices)
    assert target_run.tally.power_cuts == 0
    assert target_run.tally.kills > 5


def test_same_seed_gives_the_same_swarm_and_the_same_run() -> None:
    run = SeededRun(runtime, POSIX, 5, 12, swarm=True, various=True)
    assert str(run.about()) == str(run.about())
    assert recorded(run.run()[0]) == recorded(run.run()[0])


def test_long_run_lets_go_of_the_disks_that_died_long_ago() -> None:
    target_run, _ = SeededRun(atomic_file, POSIX, 1, 300).run()
    kept = [step.number for step in target_run.steps if any(crash.disk for crash in step.crashes)]
    assert min(kept) > 200


def test_run_ends_with_all_faults_lifted_and_a_recovery_that_changes_nothing() -> None:
    target_run, failure = SeededRun(
        atomic_file, POSIX, 3, 20, "write * #1+ ENOSPC", swarm=True
    ).run()
    assert failure is None
    assert not target_run.faults.on
    assert not target_run.crash_runner.world.alive
