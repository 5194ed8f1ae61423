"""The error of a failed barrier: its class, and its one remedy."""

from __future__ import annotations

import asyncio
import errno

import pytest

from system.errors import LogStopped
from system.recording.records.errors import BarrierFailed
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


def test_a_failed_barrier_has_one_remedy(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, _ = bench.started(3)
        bench.here.files.transfer_less("append", SEGMENT, 9)
        bench.here.files.fail("append", SEGMENT, errno.EIO, nth=1)
        bench.here.files.fail("truncate", SEGMENT, errno.EIO)
        for barrier in (lambda: recorder.record_event(*EVENTS[3]), recorder.barrier):
            with pytest.raises(BarrierFailed) as failed:
                await (barrier() or asyncio.sleep(0))
            assert str(failed.value).endswith("; " + BarrierFailed.cure)
            assert LogStopped.cure not in str(failed.value)

    run(work())
