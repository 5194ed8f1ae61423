"""Runs of the targets of this repository: plain actions, and those that nothing disturbs."""

from __future__ import annotations

import pytest

from crash_tests.targets.lifecycle import lifecycle
from powercut.fuzz.drivers.swarm import SeededRun
from sim.disk.crash.persistence import POSIX
from tests.registry import REGISTRY
from tests.unit.fuzz.target_laws import check_actions_are_json


@pytest.mark.parametrize("tag", REGISTRY.config.targets)
def test_every_proposed_action_is_plain_json_data(tag: str) -> None:
    check_actions_are_json(REGISTRY.target(tag).make_target)


def test_lifecycle_is_neither_crashed_nor_given_faults() -> None:
    run = SeededRun(lifecycle, POSIX, 1, 60).run()
    assert run.failure is None
    assert {step.action.name for step in run.log.steps} == {"create", "spawn", "turn", "terminate"}
    assert (run.tally.power_cuts, run.tally.faults) == (0, 0)
