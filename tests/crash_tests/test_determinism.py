"""The same choices give the same run: same trace, byte-identical disk, in any process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sim.trace import first_divergence
from tests.registry import REGISTRY

STEPS = 30
# Long enough for many agents: a dependence on the order of a set shows only then.
WITH_AGENTS = {"lifecycle": 100, "runtime": 300, "runtime-pending": 300}
SEEDS = {"runtime": (1,), "runtime-pending": (7,)}


def traces_of(tag: str) -> list[list[str]]:
    """Run a target in two processes at once, whose strings have different hashes."""
    steps = str(WITH_AGENTS.get(tag, STEPS))
    seeds = map(str, SEEDS.get(tag, (1, 7)))
    command = [sys.executable, "-m", "tests.crash_tests.trace_of", tag, steps, *seeds]
    processes = [
        subprocess.Popen(
            command,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "4242")
    ]
    outputs = [process.communicate()[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    return outputs


@pytest.mark.parametrize("tag", REGISTRY.config.targets)
def test_a_target_behaves_the_same_in_two_processes(tag: str) -> None:
    first, second = traces_of(tag)
    assert first_divergence(first, second) is None
    # After every lifetime the whole disk is in the trace, and every task that ran.
    images = sum(line.startswith("'image ") for line in first)
    assert images > (1 if REGISTRY.target(tag).make_target().crash_free else STEPS // 4)
    if tag in WITH_AGENTS:
        assert sum("  run turns of " in line for line in first) > STEPS // 4


def test_a_divergence_is_named_by_its_first_line() -> None:
    found = first_divergence(["a", "b", "c"], ["a", "x", "y"])
    assert found == (2, "b", "x")
    assert first_divergence(["a"], ["a", "b"]) == (2, "", "b")
