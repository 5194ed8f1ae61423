"""Records that are computed from log records: copies, and gaps in the numbers."""

from __future__ import annotations

import pytest

from system.recording.executions.entry_type import EntryType
from system.recording.executions.log_record import LogRecord, encoded_log_record, end_of_log_record
from system.recording.executions.record_builder import RecordBuilder
from tests.unit.recording.test_wal_cases import execution_id, new_execution

END = end_of_log_record(execution_id("a"), "2026-01-01T00:00:00.000000Z")


def final_response(number: int, reason: bytes | None = None) -> LogRecord:
    encoded = encoded_log_record(number, b'{"status":"success"}', END, reason)
    return LogRecord(EntryType.FINAL_RESPONSE, encoded)


@pytest.mark.parametrize(
    ("reason", "kept_number", "kept_reason"),
    [(b'"recording_failure"', 1, "recording_failure"), (None, 4, "record_corrupted")],
)
def test_a_second_copy_of_a_final_response_behind_a_gap_changes_nothing(
    reason: bytes | None, kept_number: int, kept_reason: str
) -> None:
    (start,) = new_execution("a").log_records.recent
    builder = RecordBuilder.of([start, final_response(4, reason), final_response(4, reason)])
    assert [event.seq for event in builder.events] == [kept_number]
    assert builder.reason == kept_reason
    assert len(builder.kept) == 2
