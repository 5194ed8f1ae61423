"""Long executions are recorded in constant memory: as one payload in pieces, and as many events."""

from __future__ import annotations

import errno
import json
import tracemalloc
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import pytest

from system.errors import NotPlainJson
from system.host import real_host
from system.recording.executions.log_record_list import MOST_BYTES
from system.recording.executions.spool import Extent, Spool, chunks
from system.recording.open_recording import open_recording
from system.recording.recorder import InMemoryExecutionRecorder
from system.recording.records.errors import EventLost, RecordCorruptedError
from system.recording.records.event import EventType
from system.recording.records.long_text import LongText
from system.recording.records.record import ExecutionRecord
from system.recording.wal.recovery import read_log
from system.recording.wal_store import WalExecutionRecorder, WalExecutionStore
from tests.unit.recording.executions import ENVELOPE, EVENTS, RESPONSE, memory, record_events, run
from tests.unit.recording.recording_bench import Bench

ATTEMPTS: Final = (
    EventType.AGENT_ATTEMPT_START,
    EventType.AGENT_ATTEMPT_END,
    EventType.FALLBACK_TRIGGERED,
)
PIECES: Final = ("Grüße, ", "\U0001f600\n", '"', "x" * 700_000, "y" * 700_000)


def response(pieces: object) -> dict[str, object]:
    return {"status": "success", "payload": {"response": pieces}, "metadata": {}}


def record_many(recorder: WalExecutionRecorder, number: int, text: str) -> None:
    """Record attempts that fail."""
    record_events(recorder, EVENTS[:2])
    for n, event_type in enumerate(islice(cycle(ATTEMPTS), number)):
        recorder.record_event(event_type, {"n": n, "text": text})


async def open_small(bench: Bench, most_bytes: int = 200) -> None:
    """Open the recording so that few bytes of an execution are kept in memory."""
    bench.recording, bench.log = await open_recording(bench.host, most_bytes=most_bytes)
    bench.store = WalExecutionStore(bench.recording, bench.host.clock)


def of_memory(record: Callable[[InMemoryExecutionRecorder], object]) -> ExecutionRecord:
    """Return what a recorder in memory makes of the same calls."""
    clock, ids, store = memory()
    recorder = InMemoryExecutionRecorder(clock, ids, store)
    execution_id = recorder.start(ENVELOPE)
    record(recorder)
    return store.load(execution_id)


def test_a_long_execution_has_the_record_of_a_short_one(bench: Bench) -> None:
    async def work() -> None:
        await open_small(bench)
        recorder, execution_id = bench.started()
        record_many(recorder, 14, "z" * 50)
        observed = bench.store.load(execution_id)
        await recorder.end(RESPONSE)
        waiting = bench.store.load(execution_id)
        log = read_log(bench.host.files, bench.host.clock)
        await bench.recording.close()
        await open_small(bench)
        written = bench.store.load(execution_id)
        assert waiting == written == log.executions.all()[execution_id].record()
        assert [event.seq for event in written.events] == list(range(1, 18))
        assert observed.events == written.events[:-1]
        assert [str(event.timestamp) for event in observed.events] == [
            str(event.timestamp) for event in written.events[:-1]
        ]
        assert tuple(bench.recording.files.stream_events(execution_id)) == written.events
        assert bench.names("snapshots") == []

    run(work())


def test_a_text_in_pieces_is_recorded_like_the_whole_text(bench: Bench) -> None:
    def pieces(recorder: InMemoryExecutionRecorder) -> None:
        record_events(recorder, EVENTS[:3])
        end = {"agent": "a", "status": "success", "log": LongText(("a", "b"))}
        recorder.record_event(EventType.AGENT_ATTEMPT_END, end)
        recorder.complete(response(LongText(PIECES)))

    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(3)
        end = {"agent": "a", "status": "success", "log": LongText(("a", "b"))}
        recorder.record_event(EventType.AGENT_ATTEMPT_END, end)
        record = await recorder.finalize(response(LongText(PIECES)))
        assert record is not None
        assert record.final_response == response("".join(PIECES))
        assert record.events[3].payload == {**end, "log": "ab"}
        expected = of_memory(pieces)
        assert record.events == expected.events
        log = read_log(bench.host.files, bench.host.clock)
        assert log.executions.all()[execution_id].record() == record
        await bench.recording.close()
        await bench.open()
        assert bench.store.load(execution_id) == record
        streamed = b"".join(bench.recording.files.stream_response(execution_id))
        assert json.loads(streamed) == record.final_response

    run(work())


def test_long_text_that_is_not_plain_is_refused(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(3)
        pieces: tuple[Any, ...] = (("a", "\ud800"), (1234,), (None, True), ("a", b"x"))
        for odd in (*map(LongText, pieces), {"a": {1: LongText(("a",))}}):
            with pytest.raises(NotPlainJson):
                recorder.record_event(EventType.AGENT_ATTEMPT_END, {"text": odd})
        cyclic: dict[str, object] = {}
        cyclic["itself"] = cyclic
        with pytest.raises(NotPlainJson, match="nested deeper"):
            recorder.record_event(EventType.AGENT_ATTEMPT_END, cyclic)
        deep: dict[str, object] = {"text": LongText(("a",))}
        for _ in range(120):
            deep = {"deep": deep}
        with pytest.raises(NotPlainJson, match="nested deeper"):
            recorder.record_event(EventType.AGENT_ATTEMPT_END, deep)
        with pytest.raises(NotPlainJson, match="is not an object"):
            await recorder.end(LongText(("a",)))
        assert len(bench.store.load(execution_id).events) == 3
        await recorder.end({"status": "error", "error": LongText(("a", "b"))})
        assert bench.store.load(execution_id).final_response == {"status": "error", "error": "ab"}

    run(work())


@pytest.mark.parametrize("pieces", [("a", 1), (None,), ("a", b"x"), ("a", "\ud800"), 5])
def test_long_text_in_memory_that_is_not_plain_is_refused(bench: Bench, pieces: Any) -> None:
    async def work() -> None:
        await bench.open()
        odd, recorder = {"text": LongText(pieces)}, InMemoryExecutionRecorder(*memory())
        for each in (recorder, bench.recorder()):
            with pytest.raises(NotPlainJson):
                each.start(odd)
        assert list(bench.store.list_all()) == []
        recorder.start(ENVELOPE)
        for each in (recorder, bench.started()[0]):
            record_events(each, EVENTS[:3])
            with pytest.raises(NotPlainJson):
                each.record_event(EventType.AGENT_ATTEMPT_END, odd)
            with pytest.raises(NotPlainJson):
                await each.finalize(odd)

    run(work())


def test_a_text_that_the_disk_refuses_is_a_lost_event(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(3)
        bench.here.files.fail("open-create", "", errno.ENOSPC)
        with pytest.raises(OSError, match="No space"):
            recorder.record_event(EventType.AGENT_ATTEMPT_END, {"text": LongText(("a",))})
        with pytest.raises(EventLost):
            recorder.record_event(EventType.AGENT_ATTEMPT_END, {})
        assert bench.store.load(execution_id).header.replayable_reason == "recording_failure"

    run(work())


def test_events_that_the_disk_refuses_to_spool_stay_in_memory(bench: Bench) -> None:
    async def work() -> None:
        await open_small(bench)
        recorder, execution_id = bench.started(2)
        bench.here.files.fail("open-create", "", errno.ENOSPC)
        record_events(recorder, EVENTS[2:])
        await recorder.end(RESPONSE)
        assert len(bench.store.load(execution_id).events) == 5

    run(work())


def test_bytes_that_are_not_the_written_ones_are_an_error(bench: Bench, tmp_path: Path) -> None:
    files = bench.host.files
    spool = Spool(files, bench.host.ids, "")
    extent = spool.write([b"ab", b"cd"])
    assert b"".join(spool.read(extent)) == b"abcd"
    for wrong in (Extent(0, 4, extent.crc + 1), Extent(0, 9, extent.crc)):
        with pytest.raises(OSError, match="are gone"):
            list(spool.read(wrong))
    spool.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size_bytes", [1, 2, 3, 100])
def test_chunks_have_the_same_bytes(size_bytes: int) -> None:
    found = list(chunks([b"ab", b"", b"cdefg"], size_bytes))
    assert b"".join(found) == b"abcdefg"
    assert all(len(each) == size_bytes for each in found[:-1])
    assert 0 < len(found[-1]) <= size_bytes


def test_a_long_execution_needs_little_memory(tmp_path: Path) -> None:
    async def work() -> int:
        host = real_host(str(tmp_path))
        recording, _ = await open_recording(host)
        tracemalloc.start()
        recorder = WalExecutionRecorder(host, recording)
        execution_id = recorder.start(ENVELOPE)
        record_many(recorder, 1499, "x" * 8000)
        await recorder.end(response(LongText(["y" * (1 << 16)] * 256)))
        await recording.close()
        events = islice(recording.files.stream_events(execution_id), 1501)
        assert sum(1 for _ in events) == 1501
        assert sum(map(len, recording.files.stream_response(execution_id))) > 16 << 20
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak

    assert run(work()) < 8 * MOST_BYTES


def test_damage_to_a_pack_is_found_before_the_first_piece(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        done = await bench.finished()
        await bench.recording.checkpoint()
        path = bench.root / "records" / "00000001.pack"
        content = bytearray(path.read_bytes())
        files, execution_id = bench.recording.files, done.execution_id
        member = files.packs.find(execution_id)
        assert member is not None
        content[member.size_bytes - 6] ^= 1
        path.write_bytes(content)
        for stream in (files.stream_events(execution_id), files.stream_response(execution_id)):
            with pytest.raises(RecordCorruptedError, match="the digest of the table"):
                next(stream)

    run(work())


def test_damage_to_a_spool_is_found_before_its_lines_are_parsed(bench: Bench) -> None:
    async def work() -> None:
        await open_small(bench)
        recorder, execution_id = bench.started()
        record_many(recorder, 14, "z" * 50)
        spool = bench.recording.running[execution_id].log_records.now().spool
        assert spool is not None
        spool._file.pwrite(b"?", 0)
        with pytest.raises(OSError, match="are gone"):
            bench.store.load(execution_id)
        with pytest.raises(OSError, match="are gone"):
            await recorder.finalize(RESPONSE)
        assert not bench.recording.running[execution_id].is_finished

    run(work())


@pytest.mark.parametrize("lost_bytes", [100, 900])
def test_pieces_without_the_first_ones_are_a_torn_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, lost_bytes: int
) -> None:
    for module in ("log", "segment"):
        monkeypatch.setattr(f"system.recording.wal.{module}.PIECE_BYTES", 300)

    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(4)
        await recorder.barrier()
        segment = bench.root / "wal" / "00000001.wal"
        durable = segment.read_bytes()
        recorder.complete({"status": "success", "payload": "x" * 2000})
        torn = segment.read_bytes()[len(durable) + lost_bytes :]
        segment.write_bytes(durable + bytes(lost_bytes) + torn)
        await bench.open()
        assert bench.log.report.lost_nothing
        assert bench.log.report.torn_bytes == lost_bytes + len(torn)
        assert bench.store.load(execution_id).header.replayable_reason == "execution_incomplete"

    run(work())


def test_an_execution_in_a_pack_may_be_longer_than_a_compressed_file(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("system.recording.stores.gzip_data.LARGEST_BYTES", 100)

    async def work() -> None:
        await bench.open()
        finished = await bench.finished()
        recorder, running = bench.started(2)
        await recorder.barrier()
        events = bench.store.load(running).events
        await bench.recording.checkpoint()
        assert bench.store.load(finished.execution_id) == finished
        await bench.open()
        assert bench.log.report.lost_nothing
        assert bench.store.load(running).events == events

    run(work())
