"""The registry of this repository names every target and workload that it has."""

from __future__ import annotations

from crash_tests.targets.targets import TARGETS
from crash_tests.workloads.catalogue import SCENARIOS
from tests.unit.cli.command_line import REGISTRY


def test_every_target_is_registered_under_its_tag() -> None:
    assert [target.tag for target in REGISTRY.all_targets()] == list(TARGETS)
    for target in REGISTRY.all_targets():
        assert type(target.make_target()) is type(TARGETS[target.tag]())


def test_every_workload_is_registered_under_its_tag() -> None:
    for tag, scenario in SCENARIOS.items():
        assert REGISTRY.workload(tag).run is scenario
    assert set(REGISTRY.config.workloads) == set(SCENARIOS)
