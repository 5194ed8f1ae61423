"""Swarms over the targets of this repository: those of the runtime have many kinds of action."""

from __future__ import annotations

from collections import Counter

import pytest

from crash_tests.targets.runtime import runtime
from powercut.fuzz.drivers.swarm import SeededRun, Swarm, draw_swarm
from powercut.fuzz.target_run import TargetRun
from sim.choices import SeededChoices
from sim.disk.crash.persistence import POSIX
from tests.registry import REGISTRY

SEEDS = range(300)


def swarms(steps: int = 30) -> list[Swarm]:
    run = TargetRun(runtime)
    return [draw_swarm(SeededChoices(seed), run, steps) for seed in SEEDS]


def test_every_kind_is_left_out_of_some_runs_except_the_simplest() -> None:
    run = TargetRun(runtime)
    out = Counter(
        name for swarm in swarms() for name, weight in swarm.weights.items() if not weight
    )
    first, *others = (kind.name for kind in run.kinds)
    assert first not in out
    assert all(10 < out[name] < 200 for name in others)


def test_some_runs_only_kill_some_only_cut_power_and_some_do_not_crash() -> None:
    found = Counter(str(swarm.answers.get("kind")) for swarm in swarms())
    assert found["(0,)"] > 5
    assert found["(1, 2, 3)"] > 20
    assert found["None"] > 100
    assert any(not swarm.weights["crash_and_recover"] for swarm in swarms())


@pytest.mark.parametrize("tag", REGISTRY.config.targets)
def test_no_swarm_leaves_a_target_without_a_possible_action(tag: str) -> None:
    for seed in range(12):
        run = SeededRun(REGISTRY.target(tag).make_target, POSIX, seed, 12, swarm=True).run()
        assert run.failure is None
        assert len(run.log.steps) == 12


def test_same_seed_gives_the_same_swarm_and_the_same_run() -> None:
    seeded = SeededRun(runtime, POSIX, 5, 12, swarm=True, various=True)
    assert seeded.bias() == seeded.bias() != ""
    assert seeded.run().log == seeded.run().log
