"""The same choices give the same run: same trace, byte-identical disk, in any process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import zip_longest

import pytest

from tests.registry import REGISTRY

STEPS = 30
# Long enough for many agents: a dependence on the order of a set shows only then.
WITH_AGENTS = {"lifecycle": 100, "runtime": 100, "runtime-pending": 100}
RUNS = [
    f"{tag}:{WITH_AGENTS.get(tag, STEPS)}:{seed}"
    for seed, tag in enumerate(REGISTRY.config.targets, 1)
]


def traces() -> list[dict[str, list[str]]]:
    """Run all targets in two processes at once, whose strings have different hashes."""
    command = [sys.executable, "-m", "tests.crash_tests.trace_of", *RUNS]
    processes = [
        subprocess.Popen(
            command,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "4242")
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    return [_by_run(output) for output in outputs]


def _by_run(output: str) -> dict[str, list[str]]:
    parts = [part.splitlines() for part in re.split("^run ", output, flags=re.MULTILINE)[1:]]
    return {lines[0]: lines[1:] for lines in parts}


def test_a_target_behaves_the_same_in_two_processes(subtests: pytest.Subtests) -> None:
    first, second = traces()
    assert list(first) == list(second) == RUNS
    for run in RUNS:
        with subtests.test(run):
            tag, steps, _ = run.split(":")
            _check(tag, int(steps), first[run], second[run])


def _check(tag: str, steps: int, first: list[str], second: list[str]) -> None:
    pairs = zip_longest(first, second)
    assert next((pair for pair in pairs if pair[0] != pair[1]), None) is None
    # After every lifetime the whole disk is in the trace, and every task that ran.
    images = sum(line.startswith("'image ") for line in first)
    assert images > (0 if REGISTRY.target(tag).make_target().crash_free else steps // 8)
    if tag in WITH_AGENTS:
        assert sum("  run turns of " in line for line in first) > steps // 10
