"""Checkpoints: their order, their interruptions, and executions that are under way meanwhile."""

from __future__ import annotations

import asyncio
import errno

import pytest

from system.errors import StorageFull
from system.ports import JsonObject
from system.recording.open_recording import resume_recording
from system.recording.records.errors import RecorderError
from system.recording.records.header import Reason
from system.recording.wal.recovery import read_log
from system.storage.codec import seal
from tests.unit.recording.executions import EVENTS, FAILURE, record_events, run
from tests.unit.recording.recording_bench import SEGMENT, Bench


def test_a_checkpoint_removes_the_log_after_everything_else_is_durable(bench: Bench) -> None:
    async def work() -> None:
        await bench.open(segment_bytes=800)
        await bench.finished()
        bench.started(2)
        bench.started(4)
        bench.here.files.calls.clear()
        await bench.recording.checkpoint()
        wanted = ("fdatasync", "replace", "sync_dir", "unlink")
        assert [call for call in bench.here.files.calls if call.startswith(wanted)] == [
            "fdatasync wal/00000004.wal",
            "sync_dir wal",
            "replace records/00000001.pack",
            "sync_dir records",
            "replace snapshots/00000001.pack",
            "sync_dir snapshots",
            "replace checkpoint",
            "sync_dir ",
            *(f"unlink wal/0000000{number}.wal" for number in (1, 2, 3, 4)),
            "unlink wal/current",
        ]

    run(work())


def test_a_checkpoint_makes_the_loss_of_an_event_durable(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, running = bench.started(1)
        bench.here.files.fail("append", SEGMENT, errno.ENOSPC)
        with pytest.raises(StorageFull):
            record_events(recorder, EVENTS[1:2])
        bench.here.files.faults.clear()
        await bench.recording.checkpoint()
        await bench.open()
        header = bench.store.load(running).header
        assert header.replayable_reason == Reason.RECORDING_FAILURE

    run(work())


def test_a_checkpoint_replaces_the_snapshots_of_the_one_before(bench: Bench) -> None:
    async def work() -> None:
        await bench.open(segment_bytes=800)
        _, running = bench.started(3)
        recorder, ended = bench.started(3)
        await bench.recording.checkpoint()
        content = (bench.root / "snapshots" / "00000001.pack").read_bytes()
        recorder.complete(FAILURE)
        await bench.recording.checkpoint()
        assert bench.names("snapshots") == ["00000002.pack"]
        # A power cut may bring the removed one back.
        (bench.root / "snapshots" / "00000001.pack").write_bytes(content)
        await bench.open()
        assert bench.log.report.corrupted == []
        assert bench.log.report.lost_nothing
        assert bench.names("snapshots") == []
        assert bench.store.load(ended).final_response == FAILURE
        assert bench.store.load(running).final_response is None

    run(work())


def test_a_damaged_checkpoint_is_replaced_once(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        await bench.recording.checkpoint()
        bench.here.write("checkpoint", b"damaged")
        bench.here.files.calls.clear()
        await bench.open()
        await bench.recording.checkpoint()
        assert bench.here.files.calls.count("replace checkpoint") == 1

    run(work())


@pytest.mark.parametrize("sequence", [-1, 10**30, 1.5, "1"])
def test_a_sealed_checkpoint_with_an_impossible_number_is_damaged(
    bench: Bench, sequence: float | str
) -> None:
    async def work() -> None:
        await bench.open()
        record = await bench.finished()
        members: JsonObject = {"v": 1, "sequence": sequence, "segment": 1, "pack": 1}
        bench.here.write("checkpoint", seal(members) + b"\n")
        await bench.open()
        assert bench.store.load(record.execution_id) == record
        assert "its numbers are" in bench.log.bad[0].span.reason
        await bench.finished()

    run(work())


def test_an_execution_may_end_during_a_checkpoint(bench: Bench) -> None:
    async def work() -> None:
        await bench.open(segment_bytes=800)
        recorder, ended = bench.started(3)
        checkpoint = asyncio.create_task(bench.recording.checkpoint())
        await asyncio.sleep(0)
        assert not checkpoint.done()
        recorder.complete(FAILURE)
        await checkpoint
        await bench.open()
        assert bench.log.report.corrupted == []
        assert bench.store.load(ended).final_response == FAILURE

    run(work())


async def record_until_due(bench: Bench) -> int:
    """Record executions until a checkpoint is due; return their number."""
    number = 0
    while not bench.recording.is_checkpoint_due:
        number += 1
        recorder, _ = bench.started(0)
        recorder.complete(FAILURE)
        await recorder.barrier()
    return number


def test_a_full_segment_makes_a_checkpoint_due(bench: Bench) -> None:
    async def work() -> None:
        await bench.open(segment_bytes=3000)
        number = await record_until_due(bench)
        bench.here.files.fail("open-create", "", errno.ENOSPC)
        with pytest.raises(StorageFull):
            await bench.recording.checkpoint()
        # After a refusal another segment fills up first.
        assert not bench.recording.is_checkpoint_due
        bench.here.files.faults.clear()
        await bench.recording.checkpoint()
        assert len(list(bench.recording.files.list_all())) == number > 3
        assert bench.names("records") == ["00000002.pack"]
        # After a success the next full segment makes one due again.
        await record_until_due(bench)
        assert len(bench.recording.log.segments) == 1

    run(work())


def test_one_checkpoint_runs_at_a_time(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        done = await bench.finished()
        first = asyncio.create_task(bench.recording.checkpoint())
        for _ in range(9):
            await asyncio.sleep(0)
        assert bench.recording.being_written or not first.done()
        assert not bench.recording.is_checkpoint_due
        await bench.recording.checkpoint()
        with pytest.raises(RecorderError, match="a checkpoint is writing it"):
            bench.store.invalidate(done.execution_id, "wrong", "Ada")
        await first
        bench.store.invalidate(done.execution_id, "wrong", "Ada")

    run(work())


def test_the_directories_are_durable_before_the_checkpoint(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        # No barrier makes them durable.
        await bench.finish_without_barrier()
        bench.here.files.calls.clear()
        await bench.recording.checkpoint()
        calls = [each.partition(".tmp")[0] for each in bench.here.files.calls]
        assert calls.index("sync_dir ") < calls.index("replace checkpoint")

    run(work())


def test_a_pack_of_an_interrupted_checkpoint_is_missed_too(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        record = await bench.finished()
        bench.here.files.fail("replace", "checkpoint", errno.EIO)
        with pytest.raises(OSError, match="error"):
            await bench.recording.checkpoint()
        await bench.open()
        assert bench.store.load(record.execution_id) == record
        assert bench.names("records") == ["00000001.pack"]
        (bench.root / "records/00000001.pack").unlink()

        await bench.open()

        assert bench.log.missing_paths == ("records/00000001.pack",)

    run(work())


def test_a_name_that_a_recovery_could_not_sync_is_durable_before_the_checkpoint(
    bench: Bench,
) -> None:
    async def work() -> None:
        await bench.open()
        await bench.finished()
        bench.here.files.fail("replace", "checkpoint", errno.EIO)
        with pytest.raises(OSError, match="error"):
            await bench.recording.checkpoint()
        log = read_log(bench.host.files, bench.host.clock)
        recording = resume_recording(bench.host, log)
        assert not recording.waiting
        bench.here.files.calls.clear()
        await recording.checkpoint()
        calls = [each.partition(".tmp")[0] for each in bench.here.files.calls]
        assert "sync_dir records" in calls[: calls.index("replace checkpoint")]

    run(work())
