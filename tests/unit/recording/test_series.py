"""Valid entries that follow one another: log records, spans, numbers, and payloads in pieces."""

from __future__ import annotations

from itertools import count
from zlib import crc32

import pytest

from system.recording.executions.entry_type import EntryType
from system.recording.executions.log_record import LogRecord, encoded_log_record, end_of_log_record
from system.recording.wal.format import (
    COVERED,
    ENTRY,
    HEADER_BYTES,
    SegmentHeader,
    encode_entry,
)
from system.recording.wal.logged_executions import LoggedExecutions
from system.recording.wal.series import Series, problem_at, read_series
from tests.unit.recording.executions import CountingClock
from tests.unit.recording.test_wal_cases import EVENTS, execution_id, new_execution

HEADER = SegmentHeader(1, 5)
NOW = "2026-01-01T00:00:00.000000Z"


def log_record_of(letter: str, number: int = 1, payload: bytes = b"{}") -> LogRecord:
    encoded = encoded_log_record(number, payload, end_of_log_record(execution_id(letter), NOW))
    return LogRecord(EntryType.INTENT_RECEIVED if number else EntryType.START, encoded)


def content_of(*entries: tuple[int, bytes], first: int = 1) -> bytes:
    encoded = [
        encode_entry(entry_type, number, payload, HEADER.crc)
        for number, (entry_type, payload) in zip(count(first), entries, strict=False)
    ]
    return HEADER.encoded() + b"".join(encoded)


def series_of(*entries: tuple[int, bytes], first: int = 1) -> Series:
    content = content_of(*entries, first=first)
    found = read_series(content, HEADER_BYTES, HEADER.crc)
    assert found is not None
    assert found.end == len(content)
    return found


def in_pieces(log_record: LogRecord, *lengths: int) -> list[tuple[int, bytes]]:
    """Return the entries of a log record whose first pieces have these lengths."""
    entries, start = list[tuple[int, bytes]](), 0
    for length in lengths:
        entries.append((EntryType.PART, log_record.encoded[start : start + length]))
        start += length
    return [*entries, (log_record.entry_type, log_record.encoded[start:])]


def executions_of(*series: Series, after: int = 0) -> LoggedExecutions:
    executions = LoggedExecutions(CountingClock())
    executions.apply(series, after)
    return executions


def test_log_records_of_one_execution_that_follow_one_another_are_one_span() -> None:
    log_records = [log_record_of(letter) for letter in "aabaa"]
    series = series_of(*log_records)
    owners = [owner.decode() for owner, _ in series.spans]
    assert owners == [execution_id(letter) for letter in "aba"]
    assert list(series.log_records(series.start)) == log_records
    assert (series.seq, series.last) == (1, 5)


@pytest.mark.parametrize("last", [1, 5, 22, 23, 40])
def test_execution_of_a_log_record_in_pieces_is_found_wherever_it_is_cut(last: int) -> None:
    log_record = log_record_of("b", payload=b'"a long text"')
    pieces = in_pieces(log_record, 10, len(log_record.encoded) - 10 - last)
    series = series_of(log_record_of("b"), *pieces, log_record_of("b", 2))
    starts = [start for owner, start in series.spans if owner == execution_id("b").encode()]
    assert len(starts) == len(series.spans) == 2
    assert list(series.log_records(starts[1])) == [log_record, log_record_of("b", 2)]


def test_a_last_piece_of_one_byte_at_the_end_of_the_segment_is_read() -> None:
    log_record = log_record_of("b")
    series = series_of(*in_pieces(log_record, len(log_record.encoded) - 1))
    assert list(series.log_records(series.start)) == [log_record]
    assert series_of(in_pieces(log_record, len(log_record.encoded) - 1)[1]).last == 1


def test_pieces_without_the_last_one_are_no_log_record() -> None:
    log_record = log_record_of("b")
    series = series_of(log_record_of("a"), *in_pieces(log_record, 10, 10)[:-1])
    assert list(series.log_records(series.start)) == [log_record_of("a")]
    assert (len(series.spans), series.last) == (1, 3)


def test_log_records_up_to_a_number_are_left_out() -> None:
    long = log_record_of("a", 2)
    series = series_of(
        log_record_of("a"), *in_pieces(long, 9), log_record_of("a", 3), log_record_of("b"), first=7
    )
    shown = {
        after: [next(series.log_records(start)) for _, start in series.spans_after(after)]
        for after in range(6, 12)
    }
    first, second, third, fourth = series.log_records(series.start)
    assert shown[6] == [first, second, fourth]
    assert shown[7] == shown[8] == [second, fourth]
    assert shown[9] == [third, fourth]
    assert (shown[10], shown[11]) == ([fourth], [])


def test_only_the_first_piece_says_what_was_durable() -> None:
    known = LogRecord(EntryType.START, b'{"durable":2,' + log_record_of("a", 0).encoded[1:])
    series = series_of(*in_pieces(known, 30, 30), first=9)
    assert series.first_known_durable == series.known_durable == 2


@pytest.mark.parametrize("length", [0, 16])
def test_fewer_bytes_than_an_entry_are_no_entry(length: int) -> None:
    assert read_series(HEADER.encoded() + bytes(length), HEADER_BYTES, HEADER.crc) is None


@pytest.mark.parametrize("length", [0, 101])
def test_entry_of_an_impossible_length_ends_the_series(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("system.recording.wal.series.LARGEST_PAYLOAD", 100)
    payload = b"x" * length
    crc = crc32(payload, crc32(COVERED.pack(EntryType.START, 1, length), HEADER.crc))
    entry = ENTRY.pack(length, EntryType.START, 1, crc) + payload
    content = HEADER.encoded() + entry + b"?"
    assert read_series(content, HEADER_BYTES, HEADER.crc) is None
    assert problem_at(content, HEADER_BYTES, HEADER.crc, 0) == f"its length is {length}"


def test_entry_of_unknown_type_ends_the_series() -> None:
    content = content_of(log_record_of("a"), (9, b"{}"))
    series = read_series(content, HEADER_BYTES, HEADER.crc)
    assert series is not None
    assert series.last == 1
    assert problem_at(content, series.end, HEADER.crc, 1) == "its type 9 is unknown"


START = new_execution("a").log_records.recent[0]
UNUSABLE = {
    "no log record": b"other bytes",
    "no envelope": log_record_of("a", 0, b"[]").encoded,
    "no header": log_record_of("a", 0, b'{"envelope":{},"header":{"createdUtcIso":3}}').encoded,
    "no JSON": log_record_of("a", 0, b'{"envelope":{},"header":{"createdUtcIso":"}}').encoded,
}


@pytest.mark.parametrize("payload", UNUSABLE.values(), ids=UNUSABLE)
def test_execution_whose_start_cannot_be_used_is_headless(payload: bytes) -> None:
    other = new_execution("b").log_records.recent[0]
    executions = executions_of(series_of((EntryType.START, payload), log_record_of("a"), other))
    assert list(executions.all()) == [execution_id("b")]
    assert executions.get(execution_id("a")) is None
    assert executions.corrupted() == [execution_id("a")]


def test_execution_with_a_reason_that_is_no_text_is_headless() -> None:
    reason = encoded_log_record(0, b"other bytes", end_of_log_record(execution_id("a"), NOW))
    executions = executions_of(series_of(START, (EntryType.NOT_REPLAYABLE, reason)))
    assert (executions.all(), executions.corrupted()) == ({}, [execution_id("a")])


def test_execution_is_put_together_from_several_series() -> None:
    event_type, payload = EVENTS["intent"]
    execution = new_execution("a")
    log_record = execution.next_event(event_type, payload)
    assert isinstance(log_record, LogRecord)
    found = executions_of(series_of(START), series_of(log_record, first=9)).get(execution_id("a"))
    assert found is not None
    assert (found.event_count, found.last_event) == (1, event_type)
    other = new_execution("b").log_records.recent[0]
    both = executions_of(series_of(START), series_of(other, first=9)).all()
    assert both.keys() == {execution_id("a"), execution_id("b")}
