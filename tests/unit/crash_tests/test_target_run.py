"""Runs of the targets of this repository: plain actions, and those that nothing disturbs."""

from __future__ import annotations

import json

from crash_tests.targets.event_log import framed
from crash_tests.targets.lifecycle import lifecycle
from powercut.fuzz.action import Action
from powercut.fuzz.drivers.swarm import SeededRun
from powercut.fuzz.target_run import TargetRun
from sim.choices import PlainChoices, SeededChoices
from sim.disk.crash.persistence import POSIX
from tests.registry import REGISTRY


def test_every_proposed_action_is_plain_json_data() -> None:
    choices = SeededChoices(1)
    for target in REGISTRY.all_targets():
        run = TargetRun(target.make_target)
        for _ in range(30):
            action = run.propose(choices)
            assert Action.of_plain(json.loads(json.dumps(action.plain()))) == action
            run.perform(action, choices)


def test_the_plainest_run_crashes_nothing_and_draws_no_fault() -> None:
    run, plain = TargetRun(framed), PlainChoices()
    for _ in range(5):
        run.perform(run.propose(plain), plain)
    run.finish()
    assert {step.action.name for step in run.log.steps} == {"append"}
    assert (run.tally.power_cuts, run.tally.faults) == (0, 0)


def test_a_crash_free_target_is_neither_crashed_nor_given_faults() -> None:
    run = SeededRun(lifecycle, POSIX, 1, 60).run()
    assert run.failure is None
    assert {step.action.name for step in run.log.steps} == {"create", "spawn", "turn", "terminate"}
    assert (run.tally.power_cuts, run.tally.faults) == (0, 0)
