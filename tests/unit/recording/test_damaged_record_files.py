"""A damaged file of a record that the write-ahead log has too: it may have been invalidated."""

from __future__ import annotations

import errno

import pytest

from system.recording.offline_store import OfflineRecords
from system.recording.open_recording import resume_recording
from system.recording.records.errors import ForeignRecordFile, RecordCorruptedError
from system.recording.records.record import ExecutionRecord
from system.recording.stores.file_store import FileExecutionStore
from system.recording.wal.recovery import read_log
from system.recording.wal_store import WalExecutionStore
from tests.unit.recording.executions import run
from tests.unit.recording.recording_bench import Bench


async def invalidated_and_damaged(bench: Bench) -> ExecutionRecord:
    """Return a record as it was before it was invalidated, and its file was damaged."""
    await bench.open()
    record = await bench.finished()
    bench.store.invalidate(record.execution_id, "wrong", "Ada")
    path = bench.root / "records" / f"{record.execution_id}.json"
    path.write_bytes(path.read_bytes().replace(b'"wrong"', b'"Wrong"'))
    return record


def test_it_is_put_aside_and_reported_and_made_again_from_the_log(bench: Bench) -> None:
    async def work() -> None:
        record = await invalidated_and_damaged(bench)
        path = f"records/{record.execution_id}.json"
        damaged = (bench.root / path).read_bytes()

        await bench.open()

        assert bench.store.load(record.execution_id) == record
        (finding,) = bench.log.report.findings
        assert finding.startswith(f"{path}.quarantine.1: this damaged record was put aside")
        assert not bench.log.report.lost_nothing
        assert (bench.root / f"{path}.quarantine.1").read_bytes() == damaged
        await bench.open()
        assert bench.store.load(record.execution_id) == record
        assert bench.log.report.lost_nothing

    run(work())


def test_before_the_recovery_it_is_a_damaged_record(bench: Bench) -> None:
    async def work() -> None:
        record = await invalidated_and_damaged(bench)
        with pytest.raises(RecordCorruptedError):
            OfflineRecords(bench.host).load(record.execution_id)

    run(work())


def test_a_sound_file_behind_it_is_used(bench: Bench) -> None:
    async def work() -> None:
        record = await invalidated_and_damaged(bench)
        earlier = FileExecutionStore(bench.host, "earlier", compressed=True)
        earlier.save(record)
        invalidated = earlier.invalidate(record.execution_id, "old", "Ada")
        name = f"{record.execution_id}.json.gz"
        (bench.root / "earlier" / name).rename(bench.root / "records" / name)

        await bench.open()

        assert bench.store.load(record.execution_id) == invalidated
        assert len(bench.log.report.findings) == 1

    run(work())


def test_a_record_of_another_execution_in_its_place_is_put_aside(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        record, other = await bench.finished(), await bench.finished()
        path = f"records/{record.execution_id}.json"
        (bench.root / bench.store.save(other)).rename(bench.root / path)
        with pytest.raises(ForeignRecordFile):
            OfflineRecords(bench.host).load(record.execution_id)

        await bench.open()

        assert bench.store.load(record.execution_id) == record
        (finding,) = bench.log.report.findings
        assert finding.startswith(f"{path}.quarantine.1: this record of another execution was put")

    run(work())


def test_an_execution_that_stays_open_stays_invalidated(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(2)
        await recorder.barrier()
        files, clock = bench.host.files, bench.host.clock
        # A recovery that could not write its checkpoint.
        store = WalExecutionStore(resume_recording(bench.host, read_log(files, clock)), clock)
        record = store.invalidate(execution_id, "wrong", "Ada")

        recording = resume_recording(bench.host, read_log(files, clock), running=[execution_id])

        assert WalExecutionStore(recording, clock).load(execution_id) == record
        await recording.checkpoint()
        assert bench.names("snapshots") == []

    run(work())


def test_a_file_behind_a_directory_keeps_no_record_from_being_written(bench: Bench) -> None:
    async def work() -> None:
        record = await invalidated_and_damaged(bench)
        path = bench.root / "records" / f"{record.execution_id}.json"
        path.rename(path.with_suffix(".json.gz"))
        path.mkdir()
        await bench.open()
        path.rmdir()
        path.with_suffix(".json.gz").unlink()
        await bench.open()
        assert bench.store.load(record.execution_id) == record

    run(work())


def test_it_stays_aside_if_the_disk_refuses_the_new_record(bench: Bench) -> None:
    async def work() -> None:
        record = await invalidated_and_damaged(bench)
        bench.here.files.fail("replace", "00000001.pack", errno.EIO)
        with pytest.raises(OSError, match="error"):
            await bench.open()
        bench.here.files.faults.clear()

        await bench.open()

        assert bench.store.load(record.execution_id) == record
        assert [name for name in bench.names("records") if "quarantine" in name] == [
            f"{record.execution_id}.json.quarantine.1"
        ]

    run(work())
