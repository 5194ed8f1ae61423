"""Runs of the runtime with a barrier left out name the place where it is missing."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from powercut.fuzz.drivers.replay import replay
from powercut.fuzz.reproducer import Finding, read_reproducer
from powercut.report.cause import searched
from tests.registry import REGISTRY

REGRESSIONS = Path(__file__).parents[1] / "regressions"
CAUSES = {
    "rename-is-not-synced": (
        "/data",
        "rename at system/storage/atomic_file.py:*",
        "ack at crash_tests/targets/atomic_file.py:*",
        8,
    ),
    "content-is-not-synced": (
        "/data/state.json.tmp.*",
        "write at system/storage/transfer.py:*",
        "rename at system/storage/atomic_file.py:*",
        6,
    ),
    "recovered-lines-are-not-synced": (
        "/agents/*/events.jsonl",
        "write at system/storage/transfer.py:*",
        "ack at crash_tests/targets/event_log.py:*",
        8,
    ),
}


@pytest.mark.parametrize("tag", CAUSES)
def test_missing_barrier_is_named_and_repairs_the_run(tag: str) -> None:
    path = REGRESSIONS / f"{tag}.json"
    reproducer = read_reproducer(path)
    with REGISTRY.mutant(tag).planted() as make_target:
        run = replay(reproducer, make_target).run
        cause = searched(Finding(run, reproducer, path)).finding.cause
    file, first, last, unsafe = CAUSES[tag]
    assert cause is not None
    text = f"no fsync of {file} between {first} and {last}"
    assert fnmatchcase(cause.text, text), cause.text
    assert len(cause.unsafe) == unsafe
    assert cause.repair.startswith("with that fsync, none of ")
