"""A segment of the write-ahead log that is synced in a worker while the event loop uses the log."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from system.errors import StorageFull
from system.recording.records.errors import BarrierFailed
from tests.unit.recording.executions import EVENTS, FAILURE, RESPONSE, run
from tests.unit.recording.recording_bench import SEGMENT, Bench

T = TypeVar("T")


class HeldWorkers:
    """Workers that stop before or after one call, until ``go`` is set."""

    def __init__(self) -> None:
        self.before: int | None = None
        self.after: int | None = None
        self.is_held = asyncio.Event()
        self.go = asyncio.Event()
        self._calls = 0

    async def run(self, call: Callable[[], T]) -> T:
        self._calls += 1
        number = self._calls
        await asyncio.sleep(0)
        if number == self.before:
            await self._hold()
        try:
            return call()
        finally:
            if number == self.after:
                await self._hold()

    async def _hold(self) -> None:
        self.is_held.set()
        await self.go.wait()

    def hold_before(self, number: int) -> None:
        """Hold the call that begins as the ``number``-th one from now."""
        self.before = self._calls + number

    def hold_after(self, number: int) -> None:
        self.after = self._calls + number


def held(bench: Bench) -> HeldWorkers:
    """Give the bench workers whose calls can be held."""
    workers = HeldWorkers()
    bench.host = replace(bench.host, workers=workers)
    return workers


def test_a_full_segment_is_not_finished_while_it_is_synced(bench: Bench) -> None:
    async def work() -> None:
        workers = held(bench)
        await bench.open(segment_bytes=2000)
        recorder, execution_id = bench.started(3)
        workers.hold_after(1)
        bench.here.files.fail("fdatasync", SEGMENT, errno.EIO)
        syncing = asyncio.create_task(recorder.barrier())
        await workers.is_held.wait()
        # The kernel has reported the failure. Another sync would succeed, and prove nothing.
        bench.started(3)
        bench.started(3)
        assert bench.names("wal") == [SEGMENT, "current"]
        workers.go.set()
        with pytest.raises(BarrierFailed):
            await syncing
        bench.started()
        assert bench.names("wal") == [SEGMENT, "00000002.wal", "current"]
        record = await recorder.finalize(FAILURE)
        assert record is not None
        assert record.header.replayable_reason == "recording_failure"
        await bench.open()
        assert bench.store.load(execution_id) == record

    run(work())


def test_a_refused_write_does_not_hide_a_failed_sync(bench: Bench) -> None:
    async def work() -> None:
        workers = held(bench)
        await bench.open()
        recorder, _ = bench.started(3)
        workers.hold_after(1)
        bench.here.files.fail("fdatasync", SEGMENT, errno.EIO)
        syncing = asyncio.create_task(recorder.barrier())
        await workers.is_held.wait()
        bench.here.files.fail("append", SEGMENT, errno.ENOSPC)
        with pytest.raises((StorageFull, BarrierFailed)):
            recorder.record_event(*EVENTS[3])
        workers.go.set()
        # The barrier that precedes the end of the segment has proved nothing.
        with pytest.raises(BarrierFailed):
            await syncing

    run(work())


async def abandoned_during_its_sync(bench: Bench) -> tuple[HeldWorkers, asyncio.Task[None]]:
    """Return the workers, one of which syncs a segment that was abandoned, and its barrier."""
    workers = held(bench)
    await bench.open()
    recorder, _ = bench.started(3)
    workers.hold_before(1)
    bench.here.files.calls.clear()
    syncing = asyncio.create_task(recorder.barrier())
    await workers.is_held.wait()
    bench.here.files.transfer_less("append", SEGMENT, 9)
    bench.here.files.fail("append", SEGMENT, errno.EIO, nth=2)
    bench.here.files.fail("truncate", SEGMENT, errno.EIO)
    with pytest.raises(BarrierFailed):
        recorder.record_event(*EVENTS[3])
    return workers, syncing


def test_an_abandoned_segment_is_closed_after_its_sync(bench: Bench) -> None:
    async def work() -> None:
        workers, syncing = await abandoned_during_its_sync(bench)
        workers.go.set()
        with pytest.raises(BarrierFailed):
            await syncing
        # The kernel reports a failure only to descriptors that were open at the time.
        calls = [each for each in bench.here.files.calls if each.endswith(SEGMENT)]
        assert calls == [f"{each} wal/{SEGMENT}" for each in ("append", "fdatasync", "close")]

    run(work())


def test_a_segment_that_is_finished_during_the_sync_of_another_one_is_closed(bench: Bench) -> None:
    async def work() -> None:
        workers, syncing = await abandoned_during_its_sync(bench)
        second, _ = bench.started(3)
        bench.here.files.calls.clear()
        bench.here.files.fail("append", "00000002.wal", errno.ENOSPC)
        with pytest.raises(StorageFull):
            second.record_event(*EVENTS[3])
        assert "close wal/00000002.wal" in bench.here.files.calls
        assert f"close wal/{SEGMENT}" not in bench.here.files.calls
        workers.go.set()
        with pytest.raises(BarrierFailed):
            await syncing

    run(work())


def test_a_checkpoint_does_not_remove_a_segment_while_it_is_synced(bench: Bench) -> None:
    async def work() -> None:
        workers = held(bench)
        await bench.open()
        recorder, _ = bench.started(3)
        bench.here.files.fail("fdatasync", ".wal", errno.EIO)
        bench.here.files.fail("fdatasync", ".wal", errno.EIO)

        async def retry() -> None:
            with pytest.raises(BarrierFailed):
                await recorder.barrier()
            # The packs of the checkpoint are the next call.
            workers.hold_before(2)
            second, _ = bench.started(3)
            with pytest.raises(BarrierFailed):
                await second.barrier()
            record = await second.finalize(RESPONSE)
            assert record is not None
            assert record.header.replayable_reason == "recording_failure"

        retrying = asyncio.create_task(retry())
        await asyncio.sleep(0)
        await bench.recording.checkpoint()
        assert workers.is_held.is_set()
        assert bench.names("wal") == ["00000002.wal", "current"]
        workers.go.set()
        await retrying

    run(work())


def test_a_recovery_makes_the_entries_durable_before_it_writes_their_records(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        bench.started(3)
        # A kill: the entries may be only in the page cache.
        bench.here.files.calls.clear()
        await bench.open()
        assert bench.log.report.entries == 4
        calls = [each.partition(".tmp")[0] for each in bench.here.files.calls]
        synced, named = calls.index(f"fdatasync wal/{SEGMENT}"), calls.index("sync_dir wal")
        assert max(synced, named) < calls.index("replace records/00000001.pack")

    run(work())


def test_an_entry_that_is_appended_during_a_sync_waits_for_the_next_one(bench: Bench) -> None:
    async def work() -> None:
        workers = held(bench)
        await bench.open()
        first, _ = bench.started(3)
        workers.hold_after(1)
        syncing = asyncio.create_task(first.barrier())
        await workers.is_held.wait()
        later, _ = bench.started(3)
        waiting = asyncio.create_task(later.barrier())
        await asyncio.sleep(0)
        bench.here.files.calls.clear()
        workers.go.set()
        await syncing
        assert not waiting.done()
        await waiting
        assert bench.here.files.calls == [f"fdatasync wal/{SEGMENT}"]

    run(work())
