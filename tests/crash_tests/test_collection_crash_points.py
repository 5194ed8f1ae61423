"""Every step of a collection and of a new segment was crashed, in each phase, in both ways.

Ada's child completes, and a root agent is terminated; both are collected. Ada's log, and that of
the operator, begin new segments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from crash_tests.crash_everywhere import CrashEverywhere, watching
from crash_tests.targets.runtime_segments import runtime_collected, runtime_segments
from powercut.fuzz.action import Action
from powercut.fuzz.coverage import Coverage, SubStep
from tests.crash_tests.sub_steps import must_be_tried
from tests.crash_tests.test_crash_points import RUN, create, send

COLLECTING: Final = (
    create("Ada"),
    send(0, ["spawn_agent", {"name": "Dan", "instructions": "wait"}]),
    RUN,
    send(1, ["complete", {"result": "done"}]),
    RUN,
    create("Bob"),
    Action("terminate", {"agent": 1, "patience": 0}),
    Action("advance", {"seconds": 4_000, "back": False}),
)
SEGMENTS: Final = (
    create("Ada"),
    *[send(0, ["send_message", {"to": "USER", "payload": "hello"}]), RUN] * 4,
)
COLLECTION_STEPS: Final = {
    "write the archive": ("Write", "Archive.write"),
    "fsync of the archive": ("Sync", "Archive.write"),
    "rename the archive": ("Rename", "Archive.write"),
    "the rows": ("Sync", "DurableWork.run"),
    "remove a file": ("Unlink", "SessionStore.remove_all"),
    "remove a directory": ("Unlink directory", "SessionStore.remove_all"),
    "fsync of the directory of all": ("Sync directory", "SessionStore.remove_all"),
}
SEGMENT_STEPS: Final = {
    "write the segment": ("Write", "EventLog.begin_segment"),
    "fsync of the segment": ("Sync", "EventLog.begin_segment"),
    "rename it": ("Rename", "EventLog.begin_segment"),
    "fsync of its directory": ("Sync directory", "EventLog.begin_segment"),
}


def must_try(crashes: CrashEverywhere, steps: Mapping[str, tuple[str, str]]) -> None:
    named = [SubStep(name, operation, (caller,)) for name, (operation, caller) in steps.items()]
    must_be_tried(named, crashes.coverage)
    assert [str(gap) for gap in crashes.coverage.gaps()] == []


def collecting() -> CrashEverywhere:
    return CrashEverywhere(runtime_collected, watching(runtime_collected), COLLECTING, Coverage())


def test_every_step_of_a_collection_is_crashed() -> None:
    crashes = collecting()
    crashes.run(("advance",))
    must_try(crashes, COLLECTION_STEPS)


@pytest.mark.stress
def test_every_step_of_a_boot_after_a_collection_is_crashed() -> None:
    crashes = collecting()
    crashes.run_boots(("advance",))
    must_try(crashes, {"remove a file at a boot": ("Unlink", "sweep_sessions")})


def test_every_step_of_a_new_segment_is_crashed() -> None:
    make = runtime_segments
    crashes = CrashEverywhere(make, watching(make), SEGMENTS, Coverage())
    crashes.run(("run",))
    must_try(crashes, SEGMENT_STEPS)
