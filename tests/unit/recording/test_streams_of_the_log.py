"""Executions that are only in the log are read in pieces like all others."""

from __future__ import annotations

import errno
import json

import pytest

from system.errors import StorageFull
from system.recording.open_recording import open_recording
from system.recording.records.errors import RecordNotFoundError
from system.recording.records.header import Reason
from system.recording.wal_store import WalExecutionStore
from tests.unit.recording.executions import EVENTS, RESPONSE, run
from tests.unit.recording.recording_bench import SEGMENT, Bench


async def opened(bench: Bench, most_bytes: int) -> None:
    """Open the recording with this many bytes of an execution in memory."""
    bench.recording, _ = await open_recording(bench.host, most_bytes=most_bytes)
    bench.store = WalExecutionStore(bench.recording, bench.host.clock)


most_bytes = pytest.mark.parametrize("most_bytes", [200, 1 << 20], ids=["spool", "memory"])


@most_bytes
def test_an_execution_is_read_in_pieces_before_and_after_its_checkpoint(
    bench: Bench, most_bytes: int
) -> None:
    async def work() -> None:
        await opened(bench, most_bytes)
        recorder, execution_id = bench.started(4)
        events = bench.store.load(execution_id).events
        assert tuple(bench.store.stream_events(execution_id)) == events
        assert list(bench.store.stream_response(execution_id)) == []
        record = await recorder.finalize(RESPONSE)
        assert record is not None
        for _ in range(2):
            assert tuple(bench.store.stream_events(execution_id)) == record.events
            response = b"".join(bench.store.stream_response(execution_id))
            assert json.loads(response) == RESPONSE
            await bench.recording.checkpoint()

    run(work())


@most_bytes
def test_a_checkpoint_does_not_end_a_stream(bench: Bench, most_bytes: int) -> None:
    async def work() -> None:
        await opened(bench, most_bytes)
        record = await bench.finished()
        stream = bench.store.stream_events(record.execution_id)
        first = next(stream)
        await bench.recording.checkpoint()
        assert not bench.recording.waiting
        assert (first, *stream) == record.events

    run(work())


def test_a_reason_that_no_log_record_gives_has_no_event(bench: Bench) -> None:
    async def work() -> None:
        await opened(bench, 200)
        recorder, execution_id = bench.started(3)
        bench.here.files.fail("append", SEGMENT, errno.ENOSPC)
        with pytest.raises(StorageFull):
            recorder.record_event(*EVENTS[3])
        record = bench.store.load(execution_id)
        assert record.header.replayable_reason == Reason.RECORDING_FAILURE
        assert tuple(bench.store.stream_events(execution_id)) == record.events

    run(work())


@pytest.mark.parametrize("unknown", ["exec-" + "0" * 16, "exec-1", "../root.json"])
def test_an_unknown_execution_has_no_stream(bench: Bench, unknown: str) -> None:
    run(bench.open())
    for stream in (bench.store.stream_events(unknown), bench.store.stream_response(unknown)):
        with pytest.raises(RecordNotFoundError, match="there is no record"):
            next(stream)
