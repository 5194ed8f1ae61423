"""Every operation of a recording was crashed, in each phase, by a kill and by a power cut.

Three executions fill several segments of the log. One of them is saved compressed before its end
is durable in the log. A checkpoint writes two into a pack of records and the third one into a
snapshot. Two records are invalidated, and the next checkpoint replaces the snapshot. After each
crash the records, the report and the files are judged by the specification of the recording. A
power cut loses all that is unsynced; ``crash_tests/workloads/recording.py`` is explored with other
survivors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from crash_tests.crash_everywhere import CrashEverywhere, watching
from crash_tests.targets.recording import RecordingTarget
from powercut.fuzz.action import Action, ActionKind, Arguments, Json
from powercut.fuzz.coverage import Coverage
from system.recording.stores.file_store import FileExecutionStore
from tests.crash_tests.sub_steps import DIRECTORY, Piece, must_be_tried, of, within


class SavingTarget(RecordingTarget):
    """The target of recording, with an action that saves a record compressed."""

    def actions(self) -> Sequence[ActionKind]:
        return (
            *super().actions(),
            ActionKind("save", 1, self._save, self._propose_one, self._has_records),
        )

    def _save(self, arguments: Arguments) -> str:
        execution_id = self._known_id(arguments)
        files = FileExecutionStore(self._host, "records", "snapshots", compressed=True)
        path = files.save(self._store.load(execution_id))
        self._shadow.saved(execution_id)
        return path


def start(events: int) -> Action:
    arguments: Arguments = {
        "events": events, "side_effects": "REVERSIBLE", "text": "tea", "odd": "", "rate": 100,
    }  # fmt: skip
    return Action("start", arguments)


def finish(execution: int, end: str, pieces: int = 1) -> Action:
    arguments: dict[str, Json] = {
        "execution": execution, "text": "done", "status": "success", "end": end, "others": 0,
        "pieces": pieces,
    }  # fmt: skip
    return Action("finish", arguments)


def of_execution(name: str, execution: int) -> Action:
    return Action(name, {"execution": execution})


EVENT: Final = Action("event", {"execution": 0, "status": "success"})
READ: Final = Action("read", {})
CHECKPOINT: Final = Action("checkpoint", {})
SCRIPT: Final = (
    start(4),
    start(2),
    start(0),
    finish(0, "finalize"),
    finish(0, "complete"),
    of_execution("save", 1),
    READ,  # it checks the segments by their format
    CHECKPOINT,
    EVENT,
    of_execution("invalidate", 1),
    of_execution("invalidate", 0),
    CHECKPOINT,
)
ACTIONS: Final = {action.name for action in SCRIPT if action is not READ}

REPLACEMENT: Final[Sequence[Piece]] = (
    ("create the temporary file", "Create", ("_create_temporary",)),
    ("write it", "Write", ("replace_by_pieces",)),
    ("fsync it", "Sync", ("replace_by_pieces",)),
    ("rename it", "Rename", ("replace_by_pieces",)),
)
ROTATION: Final[Sequence[Piece]] = (
    ("barrier of the full segment", "Sync", ("WriteAheadLog._finish_durably",)),
    ("fsync of its directories", DIRECTORY, ("WriteAheadLog._finish_durably",)),
    ("create the segment", "Create", ("WalSegment.create",)),
    ("write its header", "Write", ("WalSegment.create",)),
    ("make the link", "Create", ("WriteAheadLog._point_to",)),
    ("rename the link", "Rename", ("WriteAheadLog._point_to",)),
)
SETTLED: Final[Sequence[Piece]] = (
    ("barrier of the log", "Sync", ("WriteAheadLog._sync_all",)),
    *within("a pack", REPLACEMENT, "FileExecutionStore.write_pack"),
    ("fsync of the directory of a pack", DIRECTORY, ("FileExecutionStore.sync",)),
    *within("the file of the checkpoint", REPLACEMENT, "write_checkpoint"),
    ("fsync of the root", DIRECTORY, ("write_checkpoint",)),
    ("remove a segment", "Unlink", ("WriteAheadLog.remove_before",)),
    ("remove a snapshot", "Unlink", ("FileExecutionStore.remove_pack",)),
)
INVALIDATION: Final[Sequence[Piece]] = (
    *within("the record", REPLACEMENT, "WalExecutionStore.invalidate"),
    ("fsync of the directory of records", DIRECTORY, ("WalExecutionStore.invalidate", "sync")),
)
SAVE: Final[Sequence[Piece]] = (
    *within("the record", REPLACEMENT, "FileExecutionStore.save"),
    ("fsync of the directory of records", DIRECTORY, ("FileExecutionStore.save", "sync")),
)
PACKING: Final[Sequence[Piece]] = (
    ("sync a segment", "Sync", ("make_log_durable",)),
    *SETTLED[1:],
)
"""The steps of a boot that packs records."""
STEPS: Final[Mapping[tuple[str, ...], Sequence[Piece]]] = {
    ("start", "event"): ROTATION,
    ("checkpoint",): SETTLED,
    ("invalidate",): INVALIDATION,
    ("save",): SAVE,
}
"""The steps of the calls, by the actions that make them."""


def crashed() -> CrashEverywhere:
    return CrashEverywhere(SavingTarget, watching(SavingTarget), SCRIPT, Coverage())


def during(coverage: Coverage, *actions: str) -> Coverage:
    """Return the part of ``coverage`` that concerns these actions."""
    hits = {hit: count for hit, count in coverage.hits.items() if hit.during in actions}
    return Coverage(hits=Counter(hits))


def test_every_operation_is_crashed(subtests: pytest.Subtests) -> None:
    crashes = crashed()
    crashes.run(ACTIONS)
    coverage = crashes.coverage
    for actions, pieces in STEPS.items():
        with subtests.test(actions[0]):
            must_be_tried(of(actions[0], pieces), during(coverage, *actions))
    with subtests.test("a pack of records and one of snapshots"):
        renamed = [site for site in coverage.met["checkpoint"] if site.operation == "Rename"]
        assert len([site for site in renamed if site.is_for("write_pack")]) == 2
    with subtests.test("every site of the script is crashed"):
        assert [str(gap) for gap in coverage.gaps()] == []
        assert set(coverage.met) == ACTIONS


def test_every_operation_of_a_boot_that_packs_records_is_crashed() -> None:
    crashes = crashed()
    crashes.run_boots(("invalidate",))
    must_be_tried(of("boot", PACKING, "open_recording"), crashes.coverage)
    assert [str(gap) for gap in crashes.coverage.gaps()] == []
