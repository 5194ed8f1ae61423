"""The readable part of a damaged member of a pack, for a forced replay and for people."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from system.recording.executions.entry_type import EntryType
from system.recording.executions.log_record import LogRecord, log_records_in
from system.recording.executions.record_builder import RecordBuilder
from system.recording.records.errors import RecordCorruptedError
from system.recording.records.header import Reason
from system.recording.records.record import ExecutionRecord
from system.recording.stores.gzip_data import expanded_before_damage
from system.recording.stores.record_file import parse_object
from system.storage.codec import DEEPEST, canonical

_LEVELS: Final = DEEPEST + 2
"""The nesting of a log record: its payload holds the envelope."""

_WITH_OBJECT: Final = frozenset((EntryType.START, EntryType.FINAL_RESPONSE))


def readable_part(data: bytes, execution_id: str) -> ExecutionRecord | None:
    """Return the record of the log records before the first one that cannot be read.

    They are not verified, so its reason is ``record_corrupted``. None if the start cannot be read.
    """
    builder = RecordBuilder()
    # ``ValueError``: other bytes than log records, or one that cannot follow the others.
    with suppress(ValueError, RecordCorruptedError):
        for log_record in log_records_in(expanded_before_damage(data)):
            _check(log_record, execution_id)
            builder.take(log_record)
    if builder.start is None:
        return None
    builder.reason = Reason.RECORD_CORRUPTED
    return builder.record()


def _check(log_record: LogRecord, execution_id: str) -> None:
    """Raise an error for a log record that was not written so, or is of another execution."""
    members = parse_object(log_record.encoded, execution_id)
    payload = members.get("p")
    if log_record.entry_type == EntryType.START and isinstance(payload, dict):
        payload = payload.get("envelope")
    has_object = isinstance(payload, dict) or log_record.entry_type not in _WITH_OBJECT
    is_canonical = canonical(members, _LEVELS) == log_record.encoded
    if members.get("x") != execution_id or not has_object or not is_canonical:
        raise ValueError("it is no log record of the execution")
