"""The status of a record, derived from it (docs/recording.md, Records)."""

from __future__ import annotations

from enum import StrEnum

from system.recording.records.header import Reason
from system.recording.records.record import ExecutionRecord
from system.recording.records.structure import find_problems


class ExecutionStatus(StrEnum):
    """The first of these that applies; the final response shows success or error."""

    CORRUPTED = "corrupted"
    INVALIDATED = "invalidated"
    RECORDING_FAILED = "recording_failed"
    COMPLETED = "completed"
    RUNNING = "running"
    INCOMPLETE = "incomplete"


def status_of(record: ExecutionRecord, *, is_running: bool = False) -> ExecutionStatus:
    """Return the status; ``is_running`` is that of the store of a live runtime."""
    if find_problems(record):
        return ExecutionStatus.CORRUPTED
    header = record.header
    if header.replayable_reason == Reason.MANUALLY_INVALIDATED:
        return ExecutionStatus.INVALIDATED
    if header.replayable_reason == Reason.RECORDING_FAILURE:
        return ExecutionStatus.RECORDING_FAILED
    if record.frozen_response is not None:
        return ExecutionStatus.COMPLETED
    return ExecutionStatus.RUNNING if is_running else ExecutionStatus.INCOMPLETE
