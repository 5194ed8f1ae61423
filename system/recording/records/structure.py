"""Verification of a record: structure, hashes and event chain (docs/file-formats.md, Records)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from system.recording.records.envelope_hash import (
    HASH_TEXT,
    HASH_VERSION,
    HashFunction,
    matching_function,
)
from system.recording.records.errors import RecordCorruptedError, UnsoundRecord
from system.recording.records.event import EventType, ExecutionEvent
from system.recording.records.event_chain import event_chain
from system.recording.records.event_order import first_problem
from system.recording.records.execution_id import is_execution_id
from system.recording.records.header import ExecutionHeader, Reason
from system.recording.records.record import VERSION, ExecutionRecord

WRONG_ENVELOPE: Final = "the envelope does not have the envelopeHash of the header"


def find_problems(record: ExecutionRecord) -> tuple[str, ...]:
    """Return everything that is wrong with a record, in a fixed order; empty if it is sound.

    In a record of another program only the header, the envelope and the numbers of the events
    can be checked.
    """
    problems = [*_header_problems(record.header), *_event_problems(record)]
    if envelope_function(record) is None:
        problems.append(WRONG_ENVELOPE)
    if not record.header.is_foreign:
        problems += _seal_problems(record)
    return tuple(problems)


def checked(record: ExecutionRecord, path: str) -> ExecutionRecord:
    """Return a sound record; raises ``RecordCorruptedError`` with ``path`` for another one."""
    if problems := find_problems(record):
        raise RecordCorruptedError(path, problems, record)
    return record


def to_save(record: ExecutionRecord, path: str) -> ExecutionRecord:
    """Return a record that a store may save; raises ``UnsoundRecord`` for one that is not sound."""
    if problems := find_problems(record):
        raise UnsoundRecord(path, problems, record)
    return record


def envelope_function(record: ExecutionRecord) -> HashFunction | None:
    """Return the function with which the envelope hash was computed; None if none gives it."""
    header = record.header
    return matching_function(record.frozen_envelope, header.envelope_hash, header.hash_version)


def verify_event_sequence(events: Iterable[ExecutionEvent]) -> bool:
    """Return whether the numbers are above 0 and strictly increase."""
    last = 0
    for event in events:
        if event.seq <= last:
            return False
        last = event.seq
    return True


def _header_problems(header: ExecutionHeader) -> Iterator[str]:
    if not is_execution_id(header.execution_id):
        yield f"executionId={header.execution_id!r:.100} is not exec- and 16 hex digits"
    if not HASH_TEXT.fullmatch(header.envelope_hash):
        yield "envelopeHash is not sha256: and 64 hex digits"
    if not _is_time(header.created_utc_iso):
        yield f"createdUtcIso={header.created_utc_iso!r:.100} is not a time in UTC"
    if header.replayable != (header.replayable_reason is None):
        yield "replayable and replayableReason contradict each other"
    if header.hash_version not in {None, HASH_VERSION}:
        yield f"hashVersion={header.hash_version} is unknown"


def _is_time(text: str) -> bool:
    try:
        return text.endswith("Z") and datetime.fromisoformat(text).utcoffset() is not None
    except ValueError:
        return False


def _event_problems(record: ExecutionRecord) -> Iterator[str]:
    if not verify_event_sequence(record.events):
        yield "the numbers of the events do not increase from 1"
    header = record.header
    if header.is_foreign:
        sealed = (record.version, header.event_count, header.event_chain, header.record_hash)
        if any(member is not None for member in sealed):
            yield "hashVersion is missing"
        return
    numbers = [event.seq for event in record.events]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"events are missing: their numbers are {numbers!r:.100}"
    known = [event for event in record.events if event.is_known]
    failed = _may_be_short(record)
    if problem := first_problem((event.type for event in known), failed=failed):
        yield problem
    finals = [event for event in known if event.type == EventType.FINAL_RESPONSE]
    if bool(finals) != (record.frozen_response is not None):
        yield "finalResponse and the event FINAL_RESPONSE are not both there"
    elif finals and finals[-1].frozen_payload != record.frozen_response:
        yield "finalResponse differs from the event FINAL_RESPONSE"


def _may_be_short(record: ExecutionRecord) -> bool:
    """Whether events may be missing before the final response."""
    header, response = record.header, record.final_response
    lost = header.replayable_reason == Reason.RECORDING_FAILURE or (
        header.invalidation is not None and header.invalidation.earlier == Reason.RECORDING_FAILURE
    )
    return lost or (response is not None and response.get("status") == "error")


def _seal_problems(record: ExecutionRecord) -> Iterator[str]:
    header = record.header
    if record.version != VERSION:
        yield "v is missing" if record.version is None else f"v={record.version} is unknown"
    if header.event_count != len(record.events):
        yield f"eventCount={header.event_count}, and there are {len(record.events)} events"
    if header.event_chain != event_chain(header.envelope_hash, record.events):
        yield "the events do not have the eventChain of the header"
    if header.record_hash != record.compute_hash():
        yield "the record does not have the recordHash of its header"
