"""Calls of the event loop while a checkpoint waits for a barrier, or works in another thread."""

from __future__ import annotations

import asyncio
import errno
from typing import Final

import pytest

from system.host import RealFileSystem
from system.recording.records.errors import RecorderError
from system.recording.records.long_text import LongText
from system.recording.stores.pack_folder import PackFolder
from system.recording.wal.log import WriteAheadLog
from tests.unit.recording.executions import RESPONSE, run
from tests.unit.recording.recording_bench import SEGMENT, Bench

REASON: Final = ("wrong answer", "Anna")
LONG: Final = {**RESPONSE, "payload": {"response": LongText(("a long", " answer"))}}


async def begun(bench: Bench) -> asyncio.Task[None]:
    """Begin a checkpoint, which waits for the barrier of an execution under way."""
    bench.started(2)
    checkpoint = asyncio.create_task(bench.recording.checkpoint())
    await asyncio.sleep(0)
    assert not bench.recording.being_written
    return checkpoint


@pytest.mark.parametrize("ends_meanwhile", [False, True])
def test_a_record_that_is_invalidated_during_the_barrier_stops_no_checkpoint(
    bench: Bench, ends_meanwhile: bool
) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(4)
        if not ends_meanwhile:
            await recorder.end(LONG)
        checkpoint = await begun(bench)
        if ends_meanwhile:
            recorder.append_response(LONG)
        bench.store.invalidate(execution_id, *REASON)
        await checkpoint
        await bench.open()
        assert bench.store.load(execution_id).header.invalidation is not None

    run(work())


def test_an_execution_of_which_a_snapshot_is_being_written_cannot_be_changed(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(4)
        await recorder.barrier()
        checkpoint = asyncio.create_task(bench.recording.checkpoint())
        await asyncio.sleep(0)
        assert bench.recording.being_written == {execution_id}
        recorder.complete(RESPONSE)
        with pytest.raises(RecorderError, match="a checkpoint is writing it"):
            bench.store.invalidate(execution_id, *REASON)
        await checkpoint
        bench.store.invalidate(execution_id, *REASON)

    run(work())


def test_an_execution_that_begins_during_a_failed_barrier_is_in_the_snapshot(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        bench.here.files.fail("fdatasync", SEGMENT, errno.EIO)
        checkpoint = await begun(bench)
        _, execution_id = bench.started(2)
        await checkpoint
        await bench.open()
        assert bench.store.load(execution_id).header.replayable_reason == "recording_failure"

    run(work())


def test_no_other_checkpoint_is_due_while_one_removes_segments(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reads_segments(_log: WriteAheadLog) -> bool:
        raise IndexError("another thread has removed the segment")

    async def work() -> None:
        await bench.open()
        checkpoint = await begun(bench)
        monkeypatch.setattr(WriteAheadLog, "has_superfluous_segment", property(reads_segments))
        assert not bench.recording.is_checkpoint_due
        await checkpoint

    run(work())


@pytest.mark.parametrize("is_refused", [False, True])
def test_close_waits_for_a_checkpoint_that_is_under_way(bench: Bench, is_refused: bool) -> None:
    """The checkpoint reads a spool, which ``close`` closes."""

    async def work() -> None:
        await bench.open()
        ids = []
        for _ in range(2):
            recorder, execution_id = bench.started(4)
            recorder.append_response(LONG)
            await recorder.barrier()
            ids.append(execution_id)
        if is_refused:
            bench.here.files.fail("sync_dir", "records", errno.EIO)
        checkpoint = asyncio.create_task(bench.recording.checkpoint())
        await asyncio.sleep(0)
        assert bench.recording.being_written == {*ids}
        recorder, execution_id = bench.started(4)
        recorder.append_response(RESPONSE)
        await bench.recording.close()
        assert checkpoint.done()
        assert (checkpoint.exception() is not None) == is_refused
        assert (bench.names("wal"), bench.names("records")[-1]) == ([], "00000002.pack")
        await bench.open()
        for each in (*ids, execution_id):
            assert bench.store.load(each).final_response is not None

    run(work())


def test_a_close_that_is_cancelled_while_it_waits_leaves_the_log_open(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        checkpoint = await begun(bench)
        close = asyncio.create_task(bench.recording.close())
        await asyncio.sleep(0)
        close.cancel()
        await checkpoint
        assert close.cancelled()
        await bench.recording.close()

    run(work())


class WatchedFiles(RealFileSystem):
    """The files of ``root``; ``after_listing`` is called when a directory was listed."""

    def after_listing(self) -> None:
        """Do nothing."""

    def listdir(self, path: str) -> list[str]:
        names = super().listdir(path)
        self.after_listing()
        return names


def test_a_pack_that_is_written_while_packs_are_listed_is_found(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        ((execution_id, view),) = bench.recording.waiting.items()
        files = WatchedFiles(str(bench.root))
        folder = PackFolder(files, "records")

        def write() -> None:
            monkeypatch.undo()
            folder.write(1, [view], bench.host.ids, "records")

        monkeypatch.setattr(files, "after_listing", write)
        assert folder.find(execution_id) is not None

    run(work())
