"""The whole runtime while its session records rot: each is put aside and written again."""

from __future__ import annotations

import pytest

from powercut.fuzz.drivers.swarm import SeededRun
from powercut.fuzz.source_patch import SourcePatch, patched
from powercut.fuzz.target import MakeTarget
from sim.disk.crash.persistence import POSIX
from tests.registry import REGISTRY

ROT = "read */session.json rot:0"
NOT_WRITTEN = SourcePatch(
    "system.recovery.dispatch_outboxes",
    "await recovery.host.workers.run(lambda: recovery.store.replace(record))",
    "",
)
SEEDS = range(6)


def run(make_target: MakeTarget, seed: int, faults: str) -> str:
    """Return the property that a run which begins under ``faults`` breaks, or an empty text."""
    return SeededRun(make_target, POSIX, seed, 30, faults, swarm=True).run().log.broken


@pytest.mark.parametrize("tag", ["runtime", "runtime-pending"])
def test_rot_of_records_takes_nothing_that_is_in_the_logs(tag: str) -> None:
    make_target = REGISTRY.target(tag).make_target
    assert [run(make_target, seed, ROT) for seed in SEEDS] == [""] * len(SEEDS)


def test_record_that_was_put_aside_and_is_not_written_again_is_found_only_under_rot() -> None:
    with patched([NOT_WRITTEN], ["crash_tests"]):
        make_target = REGISTRY.target("runtime").make_target
        assert "InvalidState" in {run(make_target, seed, ROT) for seed in SEEDS}
        assert {run(make_target, seed, "") for seed in SEEDS} == {""}
