"""Log records of concurrent executions are gathered and written with one call of the disk."""

from __future__ import annotations

import asyncio
import errno

import pytest

from system.errors import StorageFull
from system.recording.records.errors import EventLost
from system.recording.records.header import Reason
from system.recording.wal_store import WalExecutionRecorder
from tests.unit.recording.executions import ENVELOPE, EVENTS, FAILURE, RESPONSE, run
from tests.unit.recording.recording_bench import SEGMENT, Bench


def gathering(bench: Bench) -> WalExecutionRecorder:
    return WalExecutionRecorder(bench.host, bench.recording, at_once=False)


def test_the_log_records_of_concurrent_executions_are_written_with_one_call(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        recorders = [gathering(bench) for _ in range(64)]
        bench.here.files.calls.clear()
        for each in recorders:
            each.start(ENVELOPE, events=EVENTS[:3])
        assert bench.count("append") == 0
        await asyncio.gather(*[each.barrier() for each in recorders])
        assert (bench.count("append"), bench.count("fdatasync")) == (1, 1)
        for each in recorders:
            each.record_event(*EVENTS[3])
            each.append_response(RESPONSE)
        await asyncio.sleep(0)
        assert (bench.count("append"), bench.count("fdatasync")) == (2, 1)
        await bench.open()
        assert len([*bench.store.list_all()]) == 65
        assert bench.log.report.lost_nothing

    run(work())


def test_a_refused_write_loses_the_gathered_log_records_and_no_others(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        written, kept = bench.started(3)
        refused, ended = gathering(bench), gathering(bench)
        lost = refused.start(ENVELOPE, events=EVENTS[:3])
        failed = ended.start(ENVELOPE, events=EVENTS[:3])
        ended.append_response(FAILURE)
        bench.here.files.fail("append", SEGMENT, errno.ENOSPC)
        with pytest.raises(StorageFull, match="make room"):
            await refused.barrier()
        with pytest.raises(EventLost):
            refused.record_event(*EVENTS[3])
        refused.append_response(FAILURE)
        written.record_event(*EVENTS[3])
        assert (await bench.finished()).header.replayable
        await bench.open()
        assert bench.log.report.lost_nothing
        assert bench.log.report.corrupted == []
        assert bench.store.load(kept).header.replayable_reason == Reason.EXECUTION_INCOMPLETE
        # Their start was not written, so nothing of them is read after a kill.
        assert not {lost, failed} & {*bench.store.list_all()}

    run(work())


def test_a_checkpoint_writes_the_records_that_a_write_has_lost(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder = gathering(bench)
        execution_id = recorder.start(ENVELOPE, events=EVENTS[:3])
        await recorder.barrier()
        recorder.record_event(*EVENTS[3])
        recorder.append_response(RESPONSE)
        bench.here.files.fail("append", SEGMENT, errno.ENOSPC)
        await asyncio.sleep(0)
        assert await bench.recording.settle_entries() is True
        await bench.open()
        assert bench.store.load(execution_id).final_response == RESPONSE
        assert bench.log.report.lost_nothing

    run(work())


def test_numbers_of_a_refused_write_are_not_used_again(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, _ = bench.started(3)
        number = bench.recording.log.last
        bench.here.files.fail("append", SEGMENT, errno.EIO)
        with pytest.raises(OSError, match="Input/output error"):
            recorder.record_event(*EVENTS[3])
        bench.started()
        assert bench.recording.log.last == number + 2
        assert bench.recording.log.durable == number
        await bench.open()
        assert bench.log.report.lost_nothing

    run(work())


def test_a_gathered_response_that_is_refused_can_be_repeated(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder = gathering(bench)
        recorder.start(ENVELOPE, events=EVENTS[:4])
        await recorder.barrier()
        bench.here.files.fail("append", SEGMENT, errno.ENOSPC)
        with pytest.raises(StorageFull, match="repeat the call"):
            await recorder.finalize(RESPONSE)
        record = await recorder.finalize(RESPONSE)
        assert record is not None
        await bench.open()
        assert bench.store.load(record.execution_id) == record
        assert bench.log.report.lost_nothing

    run(work())


def test_gathered_log_records_are_written_before_a_long_one(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        other, long = gathering(bench), gathering(bench)
        kept = other.start(ENVELOPE, events=EVENTS[:3])
        bench.here.files.calls.clear()
        long.start({"text": "x" * 300_000})
        # The long one has two pieces of at most 256 KiB.
        assert bench.count("append") == 3
        await other.barrier()
        await bench.open()
        assert bench.log.report.lost_nothing
        assert len(bench.store.load(kept).events) == 3

    run(work())


def test_many_gathered_bytes_are_written_at_once(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        bench.here.files.calls.clear()
        for written in [0] * 10 + [1]:
            gathering(bench).start({"text": "x" * 100_000})
            assert bench.count("append") == written

    run(work())


def test_a_barrier_of_lost_log_records_makes_no_sync(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        refused = gathering(bench)
        refused.start(ENVELOPE, events=EVENTS[:3])
        bench.here.files.fail("append", SEGMENT, errno.ENOSPC)
        with pytest.raises(StorageFull):
            await refused.barrier()
        bench.started(3)
        bench.here.files.calls.clear()
        with pytest.raises(StorageFull):
            await refused.barrier()
        assert bench.here.files.calls == []

    run(work())


def test_log_records_that_are_gathered_when_the_log_is_closed_are_written(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        execution_id = gathering(bench).start(ENVELOPE, events=EVENTS[:3])
        # An execution under way may record in the last round of a close, after its checkpoint.
        bench.recording.log.close()
        assert bench.count("append") == 2  # the header of the segment, and the log records
        await bench.open()
        assert len(bench.store.load(execution_id).events) == 3

    run(work())
