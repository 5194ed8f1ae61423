"""Files of version 1, as they were first written: every later version reads them.

Never write them anew. A change of the format gets a new version, and a directory beside ``v1``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from system.host import real_host
from system.recording.crash_point import analyze_crash_point
from system.recording.errors import NotReplayableError
from system.recording.integrity import verify_record_integrity
from system.recording.open_recording import open_recording
from system.recording.record_file import encode_record
from system.recording.replay import replay
from system.recording.wal_store import WalExecutionStore
from tests.unit.recording.executions import ENVELOPE, RESPONSE, run

V1 = Path(__file__).parent / "golden" / "v1"
DONE, FAILED, FOREIGN, COMPRESSED = (
    "exec-0000000000000001",
    "exec-0000000000000003",
    "exec-00000000000000fe",
    "exec-00000000000000ff",
)


@pytest.fixture
def store(tmp_path: Path) -> WalExecutionStore:
    """The store of a root that version 1 has left in the middle of its work."""
    root = tmp_path / "root"
    shutil.copytree(V1, root)
    host = real_host(str(root))
    recording, log = run(open_recording(host))
    assert log.report.lost_nothing
    assert log.report.entries == 11
    return WalExecutionStore(recording, host.clock)


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
