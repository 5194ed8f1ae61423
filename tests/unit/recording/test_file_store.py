"""Records in files: two names, compressed records, foreign files."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from system.ports import SideEffectClass
from system.recording.executions.execution import Execution
from system.recording.records.envelope_hash import FrozenEnvelope
from system.recording.records.errors import (
    ForeignRecordFile,
    RecordCorruptedError,
    RecordNotFoundError,
)
from system.recording.stores.file_store import FileExecutionStore, is_settled
from system.recording.stores.record_file import encode_record
from tests.unit.recording.executions import RESPONSE, CountingClock, finished, run
from tests.unit.recording.recording_bench import Bench

ID = finished().execution_id


def execution(execution_id: str) -> Execution:
    """An execution that has started, as a log gives it."""
    effects = SideEffectClass.REVERSIBLE
    return Execution.new(CountingClock(), execution_id, FrozenEnvelope.of({}), effects, None)


def test_a_record_is_saved_durably_with_its_directory(bench: Bench) -> None:
    store = FileExecutionStore(bench.host, "deep/records")
    assert store.save(finished()) == f"deep/records/{ID}.json"
    assert bench.here.files.calls[-1] == "sync_dir deep/records"
    assert store.load(ID) == finished()
    assert store.hash_of(ID) == finished().header.record_hash
    assert FileExecutionStore(bench.host, "deep/records").hash_of(ID) is None
    assert list(FileExecutionStore(bench.host, "none").list_all()) == []


def test_a_missing_directory_of_temporary_files_is_made(bench: Bench, tmp_path: Path) -> None:
    store = FileExecutionStore(bench.host, scratch="snapshots")
    store.save(finished())
    assert FileExecutionStore(bench.host, scratch="snapshots").load(ID) == finished()
    assert [*(tmp_path / "snapshots").iterdir()] == []


def test_a_compressed_record_is_served_like_any_other(bench: Bench) -> None:
    store = FileExecutionStore(bench.host, compressed=True)
    assert store.save(finished()) == f"records/{ID}.json.gz"
    assert store.load(ID).final_response == RESPONSE
    assert store.has(ID)
    assert list(store.list_all()) == [ID]
    assert store.find_by_hash(finished().header.envelope_hash) == [ID]
    store.invalidate(ID, "wrong", "Ada")
    assert bench.names("records") == [f"{ID}.json.gz"]
    assert is_settled(store, execution(ID))


def test_a_record_that_is_too_long_to_be_expanded_is_not_compressed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("system.recording.stores.gzip_data.LARGEST_BYTES", 100)
    store = FileExecutionStore(bench.host, compressed=True)
    assert store.save(finished()) == f"records/{ID}.json"
    assert store.load(ID) == finished()


def test_only_records_with_the_hash_are_found(bench: Bench) -> None:
    store = FileExecutionStore(bench.host)
    other = "exec-" + "1" * 16
    record = finished(envelope={"another": 1})
    store.save(finished())
    store.save(replace(record, header=replace(record.header, execution_id=other)).sealed())
    assert store.find_by_hash(record.header.envelope_hash) == [other]
    assert FileExecutionStore(bench.host).find_by_hash(finished().envelope_hash) == [ID]


def test_a_record_that_cannot_be_read_is_found_by_the_hash_in_its_pack(
    bench: Bench, tmp_path: Path
) -> None:
    wanted = execution(ID).envelope_hash
    FileExecutionStore(bench.host).make_directory()
    FileExecutionStore(bench.host).write_pack(1, [execution(ID).view()])
    for nth in (1, 2):
        bench.here.files.fail("open-read", "00000001.pack", errno.EIO, nth)
        with pytest.raises(OSError, match="error"):
            FileExecutionStore(bench.host).find_by_hash(wanted)
        bench.here.files.faults.clear()
    path = tmp_path / "records/00000001.pack"
    content = path.read_bytes()
    path.write_bytes(content[:30] + b"\0" + content[31:])
    store = FileExecutionStore(bench.host)
    assert store.find_by_hash(wanted) == [ID]
    with pytest.raises(RecordCorruptedError):
        store.load(ID)


def test_of_two_files_the_one_that_is_not_compressed_counts(bench: Bench) -> None:
    plain, compressed = FileExecutionStore(bench.host), FileExecutionStore(
        bench.host, compressed=True
    )  # fmt: skip
    compressed.save(finished({"status": "success", "payload": "old"}))
    plain.save(finished())
    assert compressed.load(ID).final_response == RESPONSE
    assert compressed.save(finished()) == f"records/{ID}.json"
    assert list(plain.list_all()) == [ID]


def test_foreign_files_are_ignored_or_named(bench: Bench, tmp_path: Path) -> None:
    store = FileExecutionStore(bench.host)
    store.save(finished())
    records = tmp_path / "records"
    other = "exec-" + "1" * 16
    (records / f"{other}.json").write_bytes(encode_record(finished()))
    (records / f"exec-{'2' * 16}.json").mkdir()
    for name in ("exec-12345678.json", f"{ID}.json.tmp.12345678", "notes.txt", "EXEC-1.json"):
        (records / name).write_bytes(b"")
    assert list(store.list_all()) == [ID, other, "exec-" + "2" * 16]
    with pytest.raises(ForeignRecordFile, match=f"it is the record of {ID}"):
        store.load(other)
    with pytest.raises(ForeignRecordFile, match="it is not a regular file"):
        store.load("exec-" + "2" * 16)
    for unknown in ("exec-12345678", "../x", ID.upper()):
        with pytest.raises(RecordNotFoundError):
            store.load(unknown)
    assert store.find_by_hash(finished().header.envelope_hash) == [ID]
    with pytest.raises(ForeignRecordFile, match=f"it is the record of {ID}"):
        is_settled(store, execution(other))
    assert not is_settled(store, execution("exec-" + "3" * 16))


def test_a_directory_that_is_a_file_is_named(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "records").write_bytes(b"")
    store = FileExecutionStore(bench.host)
    with pytest.raises(ForeignRecordFile, match="it is not a directory"):
        list(store.list_all())
    with pytest.raises(OSError, match=r"exists|directory"):
        store.save(finished())


def test_packs_that_the_disk_refused_to_list_are_found_later(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        record = await bench.finished()
        await bench.recording.checkpoint()
        store = FileExecutionStore(bench.host)
        bench.here.files.fail("listdir", "records", errno.EIO)
        with pytest.raises(OSError, match="Input/output"):
            store.load(record.execution_id)
        assert store.load(record.execution_id) == record

    run(work())
