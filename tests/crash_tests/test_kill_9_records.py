"""The recording for real: a child process that records and replays, killed with SIGKILL.

Its executions rotate segments, are streamed, written by checkpoints, invalidated, or left open.
Whatever the moment of a kill: every call that had returned is in the records, no other than a
call under way may be, and the recovery reports no loss.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from crash_tests.targets.recording_reads import check_incomplete, check_record_files, read_store
from oracles.recording.canonical import canonical
from oracles.recording.record_reader import ObservedRecord
from oracles.recording.shadow_execution import LogRecordKind
from oracles.recording.shadow_recording import ShadowRecording
from system.host import real_host, run
from system.ports import Json
from system.recording.open_recording import open_recording
from system.recording.wal_store import WalExecutionStore
from tests.crash_tests.demo_process import RealProcess
from tests.crash_tests.recording_program import SEGMENT_BYTES, SIDE_EFFECTS

JOBS = 40
MOST_LINES = 160
"""Four jobs have about 55 lines."""


class RecordingLedger:
    """Passes the output lines of all processes on to the shadow of the recording."""

    def __init__(self) -> None:
        self.shadow = ShadowRecording()
        self.lines = 0

    def add(self, line: str) -> None:
        """Record one line of output."""
        call, *arguments = json.loads(line)
        getattr(self, f"_{call}")(*arguments)
        self.lines += 1

    def _begin_start(self, envelope: Json) -> None:
        self.shadow.begin_start(canonical(envelope), SIDE_EFFECTS)

    def _started(self, execution_id: str) -> None:
        self.shadow.started(execution_id)

    def _begin_event(self, execution_id: str, event_type: str, payload: Json) -> None:
        self.shadow.begin(execution_id, LogRecordKind.EVENT, event_type, canonical(payload))

    def _begin_mark(self, execution_id: str, reason: str) -> None:
        self.shadow.begin(execution_id, LogRecordKind.REASON, reason, b"")

    def _begin_end(self, execution_id: str, response: Json) -> None:
        self.shadow.end(execution_id, canonical(response))

    def _written(self, execution_id: str) -> None:
        self.shadow.written(self.shadow.executions[execution_id].log_records[-1])

    def _begin_invalidate(self, execution_id: str, reason: str, by: str) -> None:
        self.shadow.begin_invalidate(execution_id, reason, by)

    def _invalidated(self, execution_id: str) -> None:
        self.shadow.invalidated(execution_id)


async def recover(root: Path) -> dict[str, ObservedRecord | None]:
    """Recover a recording, and close it; return its records."""
    host = real_host(str(root))
    recording, log = await open_recording(host, segment_bytes=SEGMENT_BYTES)
    assert log.report.lost_nothing, log.report
    store = WalExecutionStore(recording, host.clock)
    observed = read_store(store)
    check_incomplete(store, observed)
    check_record_files(host.files, observed)
    await recording.close()
    return observed


def run_and_kill(root: Path, ledger: RecordingLedger, moments: Random, first: int) -> bool:
    """Run one process until its moment; return whether it was killed before it ended."""
    arguments = [str(root), str(first), str(JOBS)]
    errors = root.with_suffix(".stderr")
    child = RealProcess(["tests.crash_tests.recording_program", *arguments], errors, ledger.add)
    most_lines = ledger.lines + moments.randrange(MOST_LINES)
    for _line in child.lines():
        if ledger.lines >= most_lines:
            break
    is_killed = child.kill(moments.choice((0.0, 0.001, 0.005)) * moments.random())
    assert errors.read_text("utf-8") == ""
    return is_killed


@pytest.mark.parametrize(
    ("seed", "most_kills"), [(3, 8), pytest.param(1, 50, marks=pytest.mark.stress)]
)
def test_every_kill_leaves_the_records_of_all_calls_that_returned(
    tmp_path: Path, seed: int, most_kills: int
) -> None:
    root, moments, ledger = tmp_path / "root", Random(seed), RecordingLedger()
    root.mkdir()
    kills = processes = 0
    while kills < most_kills:
        kills += run_and_kill(root, ledger, moments, processes * JOBS)
        processes += 1
        if moments.random() < 0.5:
            observed = run(recover(root))
            ledger.shadow.settle(observed, kept=True)
            assert run(recover(root)) == observed

    observed = run(recover(root))
    ledger.shadow.settle(observed, kept=True)
    assert len(observed) > 4 * kills
    reasons = {record.reason for record in observed.values() if record is not None}
    assert reasons == {None, "execution_incomplete", "manually_invalidated", "uses a clock"}
    assert len(list((root / "records").glob("*.pack"))) > kills // 2
