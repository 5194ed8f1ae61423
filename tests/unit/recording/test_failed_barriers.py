"""A failed barrier: its error, and the response of an execution whose start it may have lost."""

from __future__ import annotations

import asyncio
import errno

import pytest

from system.errors import LogStopped
from system.recording.records.errors import BarrierFailed
from system.recording.records.header import Reason
from system.recording.wal_store import WalExecutionRecorder
from tests.unit.recording.executions import EVENTS, RESPONSE, run
from tests.unit.recording.recording_bench import SEGMENT, Bench


@pytest.mark.parametrize("call", ["fdatasync", "sync_dir"])
def test_a_disk_that_is_full_at_a_barrier_is_a_failed_barrier(bench: Bench, call: str) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(4)
        bench.here.files.fail(call, SEGMENT if call == "fdatasync" else "wal", errno.ENOSPC)
        # The response is kept, so ``finalize`` must not ask to be called again.
        with pytest.raises(BarrierFailed, match=r"may be lost .*No space left"):
            await recorder.finalize(RESPONSE)
        assert bench.store.load(execution_id).final_response == RESPONSE
        await bench.recording.checkpoint()
        await bench.open()
        assert bench.store.load(execution_id).final_response == RESPONSE

    run(work())


def test_a_barrier_that_fails_after_a_cancelled_close_is_noticed_by_the_next_one(
    bench: Bench,
) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(4)
        recorder.append_response(RESPONSE)
        bench.here.files.fail("fdatasync", SEGMENT, errno.EIO)
        closing = asyncio.create_task(bench.recording.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await bench.recording.close()
        assert bench.names("wal") == []
        await bench.open()
        assert bench.store.load(execution_id).final_response == RESPONSE

    run(work())


def test_a_failed_barrier_has_one_remedy(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, _ = bench.started(3)
        bench.here.files.transfer_less("append", SEGMENT, 9)
        bench.here.files.fail("append", SEGMENT, errno.EIO, nth=2)
        bench.here.files.fail("truncate", SEGMENT, errno.EIO)
        for barrier in (lambda: recorder.record_event(*EVENTS[3]), recorder.barrier):
            with pytest.raises(BarrierFailed) as failed:
                await (barrier() or asyncio.sleep(0))
            assert str(failed.value).endswith("; " + BarrierFailed.cure)
            assert LogStopped.cure not in str(failed.value)

    run(work())


async def lost_start(bench: Bench) -> tuple[WalExecutionRecorder, str]:
    """Return a recorder of which a failed barrier may have lost the start, and the id."""
    recorder, execution_id = bench.started(4)
    bench.here.files.fail("fdatasync", SEGMENT, errno.EIO)
    with pytest.raises(BarrierFailed):
        await recorder.barrier()
    return recorder, execution_id


@pytest.mark.parametrize("call", ["finalize", "end"])
def test_a_response_is_durable_although_the_log_may_have_lost_its_start(
    bench: Bench, call: str
) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = await lost_start(bench)
        async with bench.recording._checkpointing:
            # A checkpoint that is under way does not have it.
            ending = asyncio.create_task(getattr(recorder, call)(RESPONSE))
            for _ in range(10):
                await asyncio.sleep(0)
            assert not ending.done()
        await ending
        # A power cut may lose the segment.
        (bench.root / "wal" / SEGMENT).unlink(missing_ok=True)
        await bench.open()
        record = bench.store.load(execution_id)
        assert record.final_response == RESPONSE
        assert record.header.replayable_reason == Reason.RECORDING_FAILURE
        assert bench.log.report.lost_nothing

    run(work())


def test_a_response_without_a_start_whose_checkpoint_is_refused_may_be_lost(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = await lost_start(bench)
        bench.here.files.fail("sync_dir", "records", errno.ENOSPC)
        with pytest.raises(BarrierFailed, match=f"the response of {execution_id} may be lost"):
            await recorder.finalize(RESPONSE)
        await bench.recording.checkpoint()
        await bench.open()
        assert bench.store.load(execution_id).final_response == RESPONSE

    run(work())
