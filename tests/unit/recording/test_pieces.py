"""Payloads in pieces: a piece that is read without the ones before it is never a log record."""

from __future__ import annotations

from typing import Final

import pytest

from oracles.recording.wal_reader import WalEntry, read_segment
from system.ports import JsonObject
from system.storage.codec import canonical
from tests.unit.recording.executions import EVENTS, run
from tests.unit.recording.recording_bench import SEGMENT, Bench

VALUES: Final[tuple[JsonObject, ...]] = (
    {"n": 5, "p": {"status": "success"}},
    {"m": "", "n": 5, "p": {"status": "success"}},
    {"durable": 5, "n": 5, "p": {"status": "success"}},
)
"""Values that begin as the next log record does."""

PIECE_BYTES: Final = 300

BEFORE: Final = '{"n":5,"p":{"payload":{"first":"'
AFTER: Final = '","second":'

values = pytest.mark.parametrize("value", VALUES, ids=lambda value: next(iter(value)))


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("log", "segment"):
        monkeypatch.setattr(f"system.recording.wal.{module}.PIECE_BYTES", PIECE_BYTES)


async def cut_before(bench: Bench, value: JsonObject) -> tuple[str, list[WalEntry]]:
    """End an execution with a response that has a value at the end of its second piece.

    Returns the execution, and the entries of the response.
    """
    await bench.open()
    recorder, execution_id = bench.started(4)
    await recorder.barrier()
    last = bench.recording.log.last
    text = "x" * (2 * PIECE_BYTES - len(BEFORE + AFTER))
    recorder.complete({"status": "success", "payload": {"first": text, "second": value}})
    segment = read_segment((bench.root / "wal" / SEGMENT).read_bytes())
    assert segment is not None
    return execution_id, [entry for entry in segment.entries if entry.sequence > last]


def without(bench: Bench, entries: list[WalEntry]) -> int:
    """Set the first two of these entries to zeros; return the bytes from there to the end."""
    segment, start, end = bench.root / "wal" / SEGMENT, entries[0].start, entries[1].end
    content = segment.read_bytes()
    segment.write_bytes(content[:start] + bytes(end - start) + content[end:])
    return len(content) - start


def test_no_later_piece_begins_as_a_log_record_does_after_braces_in_a_text(bench: Bench) -> None:
    async def work() -> None:
        await bench.open()
        recorder, execution_id = bench.started(4)
        await recorder.barrier()
        text = "x" * (2 * PIECE_BYTES - len(BEFORE)) + "{{"
        recorder.complete({"status": "success", "payload": {"first": text}})
        segment = read_segment((bench.root / "wal" / SEGMENT).read_bytes())
        assert segment is not None
        last = segment.entries[-1]
        assert last.payload.startswith(b'"}')
        expected = bench.store.load(execution_id)
        await bench.open()
        assert bench.store.load(execution_id) == expected

    run(work())


@values
def test_no_later_piece_begins_as_a_log_record_does(bench: Bench, value: JsonObject) -> None:
    async def work() -> None:
        execution_id, entries = await cut_before(bench, value)
        pieces = [entry.payload for entry in entries]
        assert b"".join(pieces)[2 * PIECE_BYTES :].startswith(canonical(value))
        assert [piece[:2] for piece in pieces].count(b'{"') == 1
        expected = bench.store.load(execution_id)
        await bench.open()
        assert bench.store.load(execution_id) == expected

    run(work())


@values
def test_later_pieces_are_a_torn_end_whatever_they_begin_with(
    bench: Bench, value: JsonObject
) -> None:
    async def work() -> None:
        execution_id, entries = await cut_before(bench, value)
        torn_bytes = without(bench, entries)
        await bench.open()
        assert bench.log.report.lost_nothing
        assert bench.log.report.torn_bytes == torn_bytes
        record = bench.store.load(execution_id)
        assert record.header.replayable_reason == "execution_incomplete"
        assert len(record.events) == 4

    run(work())


@values
def test_later_pieces_are_no_log_record_whatever_they_begin_with(
    bench: Bench, value: JsonObject
) -> None:
    async def work() -> None:
        execution_id, entries = await cut_before(bench, value)
        recorder, _ = bench.started()
        await recorder.barrier()
        recorder.record_event(*EVENTS[0])
        without(bench, entries)
        await bench.open()
        assert bench.log.report.missing == [(entries[0].sequence, entries[1].sequence)]
        assert bench.store.load(execution_id).final_response is None

    run(work())
