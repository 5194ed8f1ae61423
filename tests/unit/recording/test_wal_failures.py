"""The write-ahead log on a disk that refuses: full, failing barriers, appends in doubt."""

from __future__ import annotations

import asyncio
import errno

import pytest

from system.errors import StorageFull
from system.recording.records.errors import BarrierFailed, EventLost, RecorderError
from system.recording.records.header import Reason
from system.recording.records.status import ExecutionStatus, status_of
from system.recording.wal_store import WalExecutionRecorder
from tests.unit.recording.executions import ENVELOPE, EVENTS, FAILURE, RESPONSE, run
from tests.unit.recording.recording_bench import SEGMENT, Bench


def test_a_failed_barrier_changes_the_segment_and_stops_nothing(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        safe = await bench.finished()
        first, lost = bench.started(3)
        second, _ = bench.started(3)
        bench.here.files.fail("fdatasync", SEGMENT, errno.EIO)
        results = await asyncio.gather(first.barrier(), second.barrier(), return_exceptions=True)
        assert [type(result) for result in results] == [BarrierFailed, BarrierFailed]
        with pytest.raises(EventLost, match="go on and finalize"):
            first.record_event(*EVENTS[3])
        after = await bench.finished()
        assert "00000002.wal" in bench.names("wal")
        record = await first.finalize(FAILURE)
        assert record is not None
        assert status_of(record) is ExecutionStatus.RECORDING_FAILED
        await bench.open()
        for each in (safe, after):
            assert bench.store.load(each.execution_id) == each
        assert bench.store.load(lost).header.replayable_reason == Reason.RECORDING_FAILURE
        assert bench.log.report.lost_nothing

    run(work())


def test_a_response_in_doubt_is_written_by_the_next_checkpoint(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        execution_id = await bench.finish_without_barrier()
        await bench.recording.checkpoint()
        # The pack has all that the log may have lost.
        assert bench.names("wal") == []
        await bench.open()
        assert bench.store.load(execution_id).final_response == RESPONSE
        assert bench.log.report.lost_nothing

    run(work())


def test_entries_in_doubt_are_not_read_after_a_checkpoint(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(4)
        segment = bench.root / "wal" / SEGMENT
        content = segment.read_bytes()
        bench.here.files.fail("fdatasync", SEGMENT, errno.EIO)
        with pytest.raises(BarrierFailed):
            await recorder.barrier()
        bench.here.files.fail("open-create", "00000002.wal", errno.ENOSPC)
        recorder.complete(RESPONSE)
        await bench.recording.checkpoint()
        # A power cut undoes the removal of the segment.
        segment.write_bytes(content)
        await bench.open()
        assert bench.store.load(execution_id).final_response == RESPONSE
        assert bench.log.report.lost_nothing

    run(work())


def test_a_cancelled_caller_does_not_hide_a_failed_barrier(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, _ = bench.started(3)
        bench.here.files.fail("fdatasync", SEGMENT, errno.EIO)
        task = asyncio.create_task(recorder.barrier())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(BarrierFailed):
            await recorder.barrier()

    run(work())


def test_a_cancelled_caller_takes_no_other_with_it(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorders = [bench.started(3)[0] for _ in range(3)]
        tasks = [asyncio.create_task(each.barrier()) for each in recorders]
        await asyncio.sleep(0)
        tasks[1].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(each) for each in results] == [
            type(None), asyncio.CancelledError, type(None)
        ]  # fmt: skip

    run(work())


def test_a_sync_that_is_cancelled_before_its_first_step_ends_all_waits(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorders = [bench.started(3)[0] for _ in range(2)]
        before = asyncio.all_tasks()
        waits = [asyncio.ensure_future(each.barrier()) for each in recorders]
        await asyncio.sleep(0)
        (syncing,) = asyncio.all_tasks() - before - {*waits}
        syncing.cancel()
        done, _ = await asyncio.wait(waits, timeout=1)
        assert [each.cancelled() for each in done] == [True, True]

        await recorders[0].barrier()

    run(work())


def started_without_last_event(bench: Bench) -> tuple[WalExecutionRecorder, str]:
    """Return a recorder whose last event the full disk has refused, and the execution's id."""
    recorder, execution_id = bench.started(3)
    bench.here.files.fail("append", SEGMENT, errno.ENOSPC)
    with pytest.raises(StorageFull):
        recorder.record_event(*EVENTS[3])
    return recorder, execution_id


def test_a_full_disk_loses_the_event_and_the_log_stays_usable(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = started_without_last_event(bench)
        record = await recorder.finalize(RESPONSE)
        assert record is not None
        assert record.header.replayable_reason == Reason.RECORDING_FAILURE
        await bench.open()
        assert bench.store.load(execution_id) == record

    run(work())


def test_a_mark_does_not_replace_the_loss_of_an_event(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = started_without_last_event(bench)
        recorder.mark_not_replayable("uses a clock")
        await recorder.finalize(RESPONSE)
        for _ in range(2):
            header = bench.store.load(execution_id).header
            assert header.replayable_reason == Reason.RECORDING_FAILURE
            await bench.open()

    run(work())


def test_a_start_that_the_disk_refuses_can_be_repeated(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder = bench.recorder()
        bench.here.files.fail("open-create", SEGMENT, errno.ENOSPC)
        with pytest.raises(StorageFull):
            recorder.start(ENVELOPE)
        with pytest.raises(RecorderError, match="before start"):
            recorder.record_event(*EVENTS[0])
        assert recorder.start(ENVELOPE) in bench.store.list_all()

    run(work())


@pytest.mark.parametrize("errors", [("append",), ("append", "truncate")])
def test_a_header_that_the_disk_refuses_leaves_no_segment(
    bench: Bench, errors: tuple[str, ...]
) -> None:
    async def work() -> None:
        await bench.open()
        for call in errors:
            bench.here.files.fail(call, SEGMENT, errno.EIO)
        with pytest.raises((OSError, BarrierFailed)):
            bench.recorder().start(ENVELOPE)
        assert SEGMENT not in bench.names("wal")
        await bench.finished()

    run(work())


def test_an_append_in_doubt_changes_the_segment(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, _ = bench.started(3)
        await recorder.barrier()
        bench.here.files.transfer_less("append", SEGMENT, 9)
        bench.here.files.fail("append", SEGMENT, errno.EIO, nth=2)
        bench.here.files.fail("truncate", SEGMENT, errno.EIO)
        with pytest.raises(BarrierFailed):
            recorder.record_event(*EVENTS[3])
        record = await recorder.finalize(RESPONSE)
        assert record is not None
        await bench.open()
        assert bench.store.load(record.execution_id) == record

    run(work())


def test_an_appended_response_is_kept_though_the_disk_refuses_it(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(4)
        bench.here.files.fail("append", SEGMENT, errno.ENOSPC)
        recorder.complete(RESPONSE)
        record = bench.store.load(execution_id)
        assert record.header.replayable
        await bench.recording.close()
        await bench.open()
        assert bench.store.load(execution_id) == record

    run(work())


def test_a_response_that_the_disk_refuses_can_be_repeated(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, _ = bench.started(4)
        bench.here.files.fail("append", SEGMENT, errno.ENOSPC)
        with pytest.raises(StorageFull):
            await recorder.finalize(RESPONSE)
        record = await recorder.finalize(RESPONSE)
        assert record is not None
        assert record.header.replayable

    run(work())


def test_a_segment_that_cannot_be_removed_is_removed_later(bench: Bench) -> None:
    async def work() -> None:
        await bench.open(segment_bytes=500)
        await bench.finished()
        bench.here.files.fail("unlink", ".wal", errno.EIO)
        await bench.recording.checkpoint()
        assert SEGMENT in bench.names("wal")
        (bench.root / "wal" / SEGMENT).unlink()
        await bench.recording.checkpoint()
        assert bench.names("wal") == []

    run(work())


def test_a_segment_that_comes_back_after_its_removal_is_removed_again(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        content = (bench.root / "wal" / SEGMENT).read_bytes()
        await bench.recording.checkpoint()
        (bench.root / "wal" / SEGMENT).write_bytes(content[:300])
        await bench.open()
        assert bench.log.report.lost_nothing
        assert bench.names("wal") == []
        await bench.finished()
        assert bench.names("wal") == ["00000002.wal", "current"]

    run(work())


def test_a_failed_sync_of_directories_is_repeated_for_the_next_segment(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, _ = bench.started(3)
        bench.here.files.fail("sync_dir", "", errno.EIO)
        with pytest.raises(BarrierFailed):
            await recorder.barrier()
        recorder, _ = bench.started(3)
        bench.here.files.calls.clear()
        await recorder.barrier()
        assert [each for each in bench.here.files.calls if "sync_dir" in each] == [
            "sync_dir ",
            "sync_dir wal",
        ]

    run(work())


def test_an_interrupted_execution_is_invalidated(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        _, execution_id = bench.started(1)
        await bench.open()
        record = bench.store.invalidate(execution_id, "obsolete", "Ada")
        members = record.header.to_dict()["invalidation"]
        assert isinstance(members, dict)
        assert members["details"] == ["execution_incomplete"]

    run(work())


def test_an_invalidation_that_was_refused_is_durable_when_it_is_repeated(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        execution_id = (await bench.finished()).execution_id
        await bench.recording.checkpoint()
        bench.here.files.fail("sync_dir", "records", errno.EIO)
        with pytest.raises(OSError, match="records"):
            bench.store.invalidate(execution_id, "wrong", "Ada")
        bench.here.files.calls.clear()
        bench.store.invalidate(execution_id, "wrong", "Ada")
        assert bench.here.files.calls[-1] == "sync_dir records"

    run(work())


def test_an_unfinished_link_is_swept(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        (bench.root / "wal" / "current.next").symlink_to(SEGMENT)
        await bench.open()
        assert bench.log.report.swept == []
        assert "current.next" not in bench.names("wal")

    run(work())


def test_temporary_files_of_the_checkpoint_are_swept(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        temporary = ["checkpoint.quarantine.1.tmp.00000001", "checkpoint.tmp.00000002"]
        for name in [*temporary, "notes.tmp.00000003"]:
            (bench.root / name).write_text("{")
        await bench.open()
        assert bench.log.report.swept == temporary
        assert [each for each in bench.names() if ".tmp." in each] == ["notes.tmp.00000003"]

    run(work())


@pytest.mark.parametrize("events", [3, 4])
def test_a_barrier_that_fails_inside_of_an_event_or_response_leaves_no_gap(
    bench: Bench, events: int
) -> None:
    async def work() -> None:
        await bench.open(segment_bytes=1)
        recorder, execution_id = bench.started(events)
        bench.here.files.fail("fdatasync", ".wal", errno.EIO)
        if events == 3:
            with pytest.raises(EventLost, match="an earlier event of this execution is lost"):
                recorder.record_event(*EVENTS[3])
        await recorder.finalize(RESPONSE)
        await bench.open()
        record = bench.store.load(execution_id)
        assert record.header.replayable_reason == "recording_failure"
        assert record.final_response == RESPONSE

    run(work())


def test_an_event_that_was_lost_without_a_segment_is_remembered_by_a_close(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(3)
        await bench.recording.checkpoint()
        bench.here.files.fail("open-create", "00000002.wal", errno.EIO)
        with pytest.raises(OSError, match="Input/output"):
            recorder.record_event(*EVENTS[3])
        await bench.recording.close()
        assert bench.names("wal") == []
        await bench.open()
        assert bench.store.load(execution_id).header.replayable_reason == Reason.RECORDING_FAILURE

    run(work())


def test_entries_after_those_in_doubt_are_not_covered_by_the_checkpoint(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, _ = bench.started(3)
        bench.here.files.fail("fdatasync", SEGMENT, errno.EIO)

        async def caller() -> WalExecutionRecorder:
            with pytest.raises(BarrierFailed):
                await recorder.barrier()
            return bench.started(4)[0]

        task = asyncio.create_task(caller())
        await asyncio.sleep(0)
        await bench.recording.checkpoint()
        later = await task
        await later.barrier()
        record = await later.finalize(RESPONSE)
        assert record is not None
        await bench.open()
        assert bench.store.load(record.execution_id) == record
        assert bench.log.report.lost_nothing

    run(work())
