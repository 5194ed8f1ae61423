"""Files of version 1, as they were first written: every later version reads them.

Never write them anew. A change of the format gets a new version, and a directory beside ``v1``.
``v1`` has a file for each record, ``v1-packs`` a pack for each checkpoint.
"""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from system.host import RealClock, real_host
from system.recording.crash_point import analyze_crash_point
from system.recording.executions.execution import Execution
from system.recording.executions.log_record import log_records_in
from system.recording.executions.record_builder import RecordBuilder
from system.recording.open_recording import open_recording
from system.recording.records.errors import NotReplayableError
from system.recording.records.integrity import verify_record_integrity
from system.recording.replays.replay import replay
from system.recording.stores.file_store import FileExecutionStore
from system.recording.stores.pack import read_table
from system.recording.stores.record_file import encode_record
from system.recording.wal_store import WalExecutionStore
from tests.unit.recording.executions import ENVELOPE, RESPONSE, run

V1 = Path(__file__).parent / "golden" / "v1"
PACKS = V1.with_name("v1-packs")
DONE, FAILED, FOREIGN, COMPRESSED = (
    "exec-0000000000000001",
    "exec-0000000000000003",
    "exec-00000000000000fe",
    "exec-00000000000000ff",
)


def recovered(golden: Path, root: Path, entries: int) -> WalExecutionStore:
    """Return the store of a root that version 1 has left in the middle of its work."""
    shutil.copytree(golden, root)
    host = real_host(str(root))
    recording, log = run(open_recording(host))
    assert log.report.lost_nothing
    assert log.report.entries == entries
    return WalExecutionStore(recording, host.clock)


@pytest.fixture
def store(tmp_path: Path) -> WalExecutionStore:
    return recovered(V1, tmp_path / "root", entries=11)


@pytest.fixture
def packs(tmp_path: Path) -> WalExecutionStore:
    return recovered(PACKS, tmp_path / "root", entries=3)


def test_all_records_of_version_1_are_found(store: WalExecutionStore) -> None:
    ids = list(store.list_all())
    assert len(ids) == 6
    assert {DONE, FAILED, FOREIGN, COMPRESSED} < set(ids)
    assert all(verify_record_integrity(store.load(each)).is_sound for each in ids)
    assert all(store.load(each).envelope == ENVELOPE for each in ids)
    assert store.find_by_hash(store.load(DONE).header.envelope_hash) == ids


@pytest.mark.parametrize("execution_id", [DONE, FOREIGN, COMPRESSED])
def test_replays_of_version_1_are_exact(store: WalExecutionStore, execution_id: str) -> None:
    assert replay(store, execution_id, ENVELOPE).response == RESPONSE


def test_reasons_of_version_1_are_kept(store: WalExecutionStore) -> None:
    with pytest.raises(NotReplayableError, match="manually_invalidated"):
        replay(store, FAILED)
    (marked, open_one) = [each for each in store.list_all() if each not in {
        DONE, FAILED, FOREIGN, COMPRESSED,
    }]  # fmt: skip
    with pytest.raises(NotReplayableError, match="uses a clock"):
        replay(store, marked)
    assert analyze_crash_point(store.load(open_one)).stage == "during_agent_execution"


def test_version_1_is_written_as_it_was(store: WalExecutionStore) -> None:
    for execution_id in (DONE, FAILED):
        content = (V1 / "records" / f"{execution_id}.json").read_bytes()
        assert encode_record(store.load(execution_id)) == content


def test_packs_of_version_1_are_read(packs: WalExecutionStore) -> None:
    ids = list(packs.list_all())
    assert [int(each[-1], 16) for each in ids] == [1, 3, 5, 6, 9, 11]
    records = [packs.load(each) for each in ids]
    assert all(verify_record_integrity(each).is_sound for each in records)
    assert packs.find_by_hash(records[0].header.envelope_hash) == ids
    assert [each.header.replayable_reason for each in records] == [
        None, "manually_invalidated", "uses a clock", None, "execution_incomplete", None,
    ]  # fmt: skip
    stages = [analyze_crash_point(each).stage for each in records]
    assert stages == [*["after_final_response"] * 4, "after_success", "after_final_response"]
    assert replay(packs, ids[0], ENVELOPE).response == RESPONSE
    assert replay(packs, ids[5], ENVELOPE).response == RESPONSE


def test_a_long_response_of_version_1_is_read_in_pieces() -> None:
    store = FileExecutionStore(real_host(str(PACKS)))
    assert b"".join(store.stream_response("exec-0000000000000006")).count(b"x") == 20_000


def test_packs_of_version_1_are_written_as_they_were() -> None:
    files = real_host(str(PACKS)).files
    for directory in ("records", "snapshots"):
        for member in read_table(files, f"{directory}/00000001.pack").members():
            lines = member.lines(files)
            assert gzip.decompress(member.stored(files)) == lines
            execution = Execution.resumed(RealClock(), RecordBuilder.of(log_records_in((lines,))))
            assert b"".join(execution.view().pieces()) == lines
