"""The log-backed recorder: kills, barriers that are shared, checkpoints, look-ups."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from system.recording.records.errors import EventLost, RecorderError, RecordNotFoundError
from system.recording.records.header import Reason
from system.recording.records.status import ExecutionStatus, status_of
from system.recording.records.structure import find_problems
from system.recording.wal.recovery import read_log
from tests.unit.recording.executions import ENVELOPE, EVENTS, RESPONSE, record_events, run
from tests.unit.recording.recording_bench import SEGMENT, Bench


def test_a_kill_loses_nothing_that_was_appended(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        done = await bench.finished()
        _, running = bench.started(3)
        before = bench.store.load(running)
        await bench.open()
        assert bench.store.load(done.execution_id) == done
        assert bench.store.load(running) == before
        assert status_of(bench.store.load(running)) is ExecutionStatus.INCOMPLETE
        assert bench.log.report.lost_nothing

    run(work())


def test_the_first_execution_costs_three_barriers_and_the_next_one(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, _ = bench.started(3)
        bench.here.files.calls.clear()
        await recorder.barrier()
        calls = [each for each in bench.here.files.calls if "sync" in each]
        assert calls == [f"fdatasync wal/{SEGMENT}", "sync_dir ", "sync_dir wal"]
        recorder, _ = bench.started(3)
        bench.here.files.calls.clear()
        await recorder.barrier()
        await recorder.barrier()
        assert bench.here.files.calls == [f"fdatasync wal/{SEGMENT}"]

    run(work())


def test_concurrent_executions_share_a_barrier(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorders = [bench.started(4)[0] for _ in range(64)]
        bench.here.files.calls.clear()
        await asyncio.gather(*(recorder.finalize(RESPONSE) for recorder in recorders))
        assert bench.count("fdatasync") <= 2

    run(work())


def test_a_new_boot_makes_a_new_segment(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        assert bench.names("wal") == [SEGMENT, "current"]
        assert (bench.root / "wal" / "current").readlink() == Path(SEGMENT)
        await bench.open()
        assert bench.names("wal") == []
        await bench.finished()
        assert bench.names("wal") == ["00000002.wal", "current"]
        assert (bench.root / "wal" / "current").readlink() == Path("00000002.wal")

    run(work())


def test_a_directory_in_the_place_of_the_next_link_stops_no_boot(bench: Bench) -> None:
    async def work() -> None:
        (bench.root / "wal" / "current.next").mkdir(parents=True)
        await bench.open()
        done = await bench.finished()
        assert bench.store.load(done.execution_id) == done

    run(work())


def test_current_that_is_a_directory_is_left(bench: Bench) -> None:
    async def work() -> None:
        (bench.root / "wal" / "current").mkdir(parents=True)
        await bench.open(segment_bytes=500)
        await bench.finished()
        assert "current" in bench.names("wal")
        (bench.root / "wal" / "current").rmdir()
        await bench.finished()
        newest = max(name for name in bench.names("wal") if name != "current")
        assert (bench.root / "wal" / "current").readlink() == Path(newest)

    run(work())


def test_a_checkpoint_writes_records_and_removes_the_log(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        done = await bench.finished()
        assert bench.names("records") == []
        await bench.recording.checkpoint()
        assert bench.names("records") == ["00000001.pack"]
        assert bench.names("wal") == []
        await bench.open()
        assert bench.log.is_settled
        assert bench.store.load(done.execution_id) == done

    run(work())


def test_an_execution_under_way_goes_on_behind_its_snapshot(bench: Bench) -> None:
    async def work() -> None:
        await bench.open(segment_bytes=3000)
        await bench.finished()
        recorder, running = bench.started(2)
        await bench.recording.checkpoint()
        assert bench.names("records") == ["00000001.pack"]
        assert (bench.names("snapshots"), bench.names("wal")) == (["00000001.pack"], [])
        while not bench.recording.is_checkpoint_due:
            await bench.finished()
        await bench.recording.checkpoint()
        assert bench.names("snapshots") == ["00000002.pack"]
        assert "00000002.wal" not in bench.names("wal")
        record_events(recorder, EVENTS[2:])
        assert await recorder.finalize(RESPONSE) is not None
        await bench.recording.close()
        assert bench.names("snapshots") == []
        await bench.open()
        assert bench.log.is_settled
        assert find_problems(bench.store.load(running)) == ()

    run(work())


def test_a_closed_recording_leaves_snapshots_of_executions_under_way(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        _, running = bench.started(2)
        before = bench.store.load(running)
        await bench.recording.close()
        assert bench.names("snapshots") == ["00000001.pack"]
        assert bench.names("wal") == []
        await bench.open()
        assert bench.store.load(running) == before
        assert bench.names("snapshots") == []

    run(work())


def test_an_execution_goes_on_from_its_snapshot_after_a_crash(bench: Bench) -> None:
    async def work() -> None:
        await bench.open(segment_bytes=800)
        recorder, running = bench.started(3)
        assert bench.recording.log.has_superfluous_segment
        await bench.recording.checkpoint()
        assert bench.names("snapshots") == ["00000001.pack"]
        record_events(recorder, EVENTS[3:])
        before = bench.store.load(running)
        await bench.open()
        assert bench.store.load(running) == before
        assert bench.names("snapshots") == []

    run(work())


def test_a_recovery_makes_the_log_durable_before_its_records(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        bench.started(2)
        calls = bench.here.files.calls
        calls.clear()
        await bench.open()
        record = next(number for number, call in enumerate(calls) if ".pack" in call)
        assert calls.index(f"fdatasync wal/{SEGMENT}") < calls.index("sync_dir wal") < record

    run(work())


def test_nothing_is_written_where_nothing_was_recorded(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        await bench.recording.close()
        assert bench.names() == []

    run(work())


def test_a_full_segment_is_followed_by_another(bench: Bench) -> None:
    async def work() -> None:
        await bench.open(segment_bytes=2000)
        for _ in range(4):
            await bench.finished()
        segments = [name for name in bench.names("wal") if name != "current"]
        assert len(segments) > 1
        assert bench.recording.is_checkpoint_due
        await bench.open()
        assert len(list(bench.store.list_all())) == 4
        assert bench.log.report.lost_nothing

    run(work())


def test_a_segment_that_is_full_before_a_barrier_is_synced_first(bench: Bench) -> None:
    async def work() -> None:
        await bench.open(segment_bytes=800)
        recorder, execution_id = bench.started(1)
        bench.here.files.calls.clear()
        record_events(recorder, EVENTS[1:3])
        assert f"fdatasync wal/{SEGMENT}" in bench.here.files.calls
        assert "00000002.wal" in bench.names("wal")
        bench.here.files.fail("fdatasync", "00000002.wal", errno.EIO)
        with pytest.raises(EventLost):
            bench.started(4)
        record = bench.store.load(execution_id)
        assert record.header.replayable_reason == Reason.RECORDING_FAILURE

    run(work())


# -- the store -----------------------------------------------------------------------------


def test_the_store_finds_running_waiting_and_written_executions(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        # The ids do not have the order in which the store reads its parts.
        bench.here.ids.given = 0xF000_0000_0000_0000
        written = await bench.finished()
        bench.here.ids.given = 0
        await bench.recording.checkpoint()
        waiting = await bench.finished()
        _, running = bench.started(2)
        ids = sorted([written.execution_id, waiting.execution_id, running])
        store = bench.store
        assert list(store.list_all()) == ids
        assert store.find_by_hash(written.header.envelope_hash) == ids
        assert store.find_by_hash("sha256:" + "0" * 64) == []
        assert [store.is_running(each) for each in ids] == [each == running for each in ids]
        assert store.hash_of(running) is None
        for record in (written, waiting):
            assert store.load(record.execution_id) == record
            assert store.hash_of(record.execution_id) == record.header.record_hash
        with pytest.raises(RecordNotFoundError):
            store.load("exec-" + "0" * 16)
        assert store.save(waiting) == f"records/{waiting.execution_id}.json"
        assert store.load(waiting.execution_id) == waiting
        assert bench.recording.has(running)
        assert bench.recording.files.has(written.execution_id)
        assert not bench.recording.has("exec-" + "0" * 16)

    run(work())


@pytest.mark.parametrize("crash", [True, False])
def test_an_invalidated_record_survives_a_redo(bench: Bench, crash: bool) -> None:
    async def work() -> None:
        await bench.open()
        done = await bench.finished()
        _, running = bench.started(1)
        record = bench.store.invalidate(done.execution_id, "wrong", "Ada")
        assert bench.store.invalidate(done.execution_id, "again", "Bob") == record
        with pytest.raises(RecorderError, match="it is running"):
            bench.store.invalidate(running, "wrong", "Ada")
        if not crash:
            await bench.recording.close()
        await bench.open()
        assert bench.store.load(done.execution_id) == record

    run(work())


def test_a_running_execution_is_not_saved_so_no_file_hides_its_response(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(4)
        unfinished = bench.store.load(execution_id)
        with pytest.raises(RecorderError, match="it is running"):
            bench.store.save(unfinished)
        record = await recorder.finalize(RESPONSE)
        await bench.recording.checkpoint()
        assert bench.store.load(execution_id) == record

    run(work())


def test_a_recovery_makes_the_names_of_records_durable(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        done = await bench.finished()
        await bench.recording.close()
        await bench.open()
        bench.here.files.fail("sync_dir", "records", errno.EIO)
        with pytest.raises(OSError, match="error"):
            bench.store.invalidate(done.execution_id, "wrong", "Ada")
        bench.here.files.faults.clear()
        bench.here.files.calls.clear()
        await bench.open()
        assert bench.store.load(done.execution_id).header.invalidation is not None
        assert "sync_dir records" in bench.here.files.calls

    run(work())


def test_an_execution_that_is_sampled_out_writes_nothing(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder = bench.recorder(sample_rate=0.0)
        recorder.start(ENVELOPE)
        record_events(recorder)
        await recorder.barrier()
        assert await recorder.finalize(RESPONSE) is None
        assert bench.names() == []

    run(work())


def test_a_payload_of_several_entries_is_read_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("log", "segment"):
        monkeypatch.setattr(f"system.recording.wal.{module}.PIECE_BYTES", 300)

    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(4)
        record = await recorder.finalize({"status": "success", "payload": "x" * 2000})
        log = read_log(bench.host.files, bench.host.clock)
        assert log.report.entries > 10
        await bench.open()
        assert bench.store.load(execution_id) == record

    run(work())


def test_a_mark_survives(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(4)
        recorder.mark_not_replayable("uses a clock")
        await recorder.finalize(RESPONSE)
        await bench.open()
        assert bench.store.load(execution_id).header.replayable_reason == "uses a clock"

    run(work())
