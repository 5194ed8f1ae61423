"""Swarms over the targets of this repository: those of the runtime have many kinds of action."""

from __future__ import annotations

import pytest

from crash_tests.targets.runtime import runtime
from powercut.fuzz.drivers.swarm import SeededRun
from sim.disk.crash.persistence import POSIX
from tests.registry import REGISTRY
from tests.unit.fuzz.target_laws import (
    check_kinds_left_out,
    check_kinds_of_crash,
    check_possible_actions,
)


def test_every_kind_is_left_out_of_some_runs_except_the_simplest() -> None:
    check_kinds_left_out(runtime)


def test_some_runs_only_kill_some_only_cut_power_and_some_do_not_crash() -> None:
    check_kinds_of_crash(runtime)


@pytest.mark.parametrize("tag", REGISTRY.config.targets)
def test_no_swarm_leaves_a_target_without_a_possible_action(tag: str) -> None:
    check_possible_actions(REGISTRY.target(tag).make_target)


def test_same_seed_gives_the_same_swarm_and_the_same_run() -> None:
    seeded = SeededRun(runtime, POSIX, 5, 12, swarm=True, various=True)
    assert seeded.bias() == seeded.bias() != ""
    assert seeded.run().log == seeded.run().log
