"""Invalidation of a record, which cannot be undone (docs/recording.md, Records)."""

from __future__ import annotations

from dataclasses import replace

from system.foreign import shown
from system.ports import Clock
from system.recording.records.errors import RecorderError
from system.recording.records.header import Invalidation, Reason
from system.recording.records.record import ExecutionRecord
from system.storage.line import timestamp


def invalidated(record: ExecutionRecord, reason: str, by: str, clock: Clock) -> ExecutionRecord:
    """Return the record invalidated; one that is already is returned as it is.

    Raises ``RecorderError`` for an empty ``reason`` or ``by``.
    """
    header = record.header
    if header.invalidation is not None:
        return record
    for name, text in (("reason", reason), ("by", by)):
        if not is_text(text):
            raise RecorderError(f"Cannot invalidate with {name}={shown(text, 100)}; give a text")
    return _with_invalidation(record, Invalidation(reason, by, timestamp(clock.wall_ns())))


def still_invalidated(record: ExecutionRecord, stored: ExecutionRecord | None) -> ExecutionRecord:
    """Return the record that replaces ``stored``; it has the invalidation of that record."""
    invalidation = None if stored is None else stored.header.invalidation
    if invalidation is None or invalidation == record.header.invalidation:
        return record
    return _with_invalidation(record, invalidation)


def _with_invalidation(record: ExecutionRecord, invalidation: Invalidation) -> ExecutionRecord:
    header = record.header
    before = header.invalidation
    earlier = header.replayable_reason if before is None else before.earlier
    header = replace(
        header,
        replayable=False,
        replayable_reason=Reason.MANUALLY_INVALIDATED,
        invalidation=replace(invalidation, earlier=earlier),
    )
    changed = replace(record, header=header)
    # A record of another program is not sealed: its events may have another order.
    return changed if header.is_foreign else changed.sealed()


def is_text(value: object) -> bool:
    """Return whether a value is a str with a character; callers may have no type checker."""
    return isinstance(value, str) and bool(value)


def check_not_running(execution_id: str, *, is_running: bool) -> None:
    """Raise ``RecorderError`` for an execution that is still running.

    Its record would be in a file of its own, and hide what is recorded after it.
    """
    if is_running:
        raise RecorderError(f"Cannot change {execution_id}: it is running; finalize it first")
