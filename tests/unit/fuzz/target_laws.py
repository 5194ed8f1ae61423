"""Laws of runs and swarms that hold for every target with enough kinds of action."""

from __future__ import annotations

import json
from collections import Counter
from typing import Final

from powercut.fuzz.action import Action
from powercut.fuzz.drivers.swarm import SeededRun, Swarm, draw_swarm
from powercut.fuzz.target import MakeTarget
from powercut.fuzz.target_run import TargetRun
from sim.choices import SeededChoices
from sim.disk.crash.persistence import POSIX

SEEDS: Final = range(300)


def swarms(make_target: MakeTarget, steps: int = 30) -> list[Swarm]:
    """Return one swarm for each seed."""
    run = TargetRun(make_target)
    return [draw_swarm(SeededChoices(seed), run, steps) for seed in SEEDS]


def check_kinds_left_out(make_target: MakeTarget) -> None:
    """Every kind is left out of some runs, except the simplest."""
    out = Counter(
        name
        for swarm in swarms(make_target)
        for name, weight in swarm.weights.items()
        if not weight
    )
    first, *others = (kind.name for kind in TargetRun(make_target).kinds)
    assert first not in out
    assert all(10 < out[name] < 200 for name in others)


def check_kinds_of_crash(make_target: MakeTarget) -> None:
    """Some runs only kill, some only cut power, and some do not crash."""
    drawn = swarms(make_target)
    found = Counter(str(swarm.answers.get("kind")) for swarm in drawn)
    assert found["(0,)"] > 5
    assert found["(1, 2, 3)"] > 20
    assert found["None"] > 100
    assert any(not swarm.weights["crash_and_recover"] for swarm in drawn)


def check_possible_actions(make_target: MakeTarget) -> None:
    """No swarm leaves a target without a possible action."""
    for seed in range(12):
        run = SeededRun(make_target, POSIX, seed, 12, swarm=True).run()
        assert run.failure is None
        assert len(run.log.steps) == 12


def check_actions_are_json(make_target: MakeTarget) -> None:
    """Every proposed action survives a round trip through JSON."""
    choices, run = SeededChoices(1), TargetRun(make_target)
    for _ in range(30):
        action = run.propose(choices)
        assert Action.of_plain(json.loads(json.dumps(action.plain()))) == action
        run.perform(action, choices)
    run.abandon()
