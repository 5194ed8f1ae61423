"""The record of an execution, computed from its log records (docs/file-formats.md, Log records).

Taking a log record twice changes nothing, because events are numbered. A snapshot and the log after
it may have the same log records.
"""

from __future__ import annotations

from collections.abc import Iterable
from json import loads
from typing import Final

from system.recording.executions.entry_type import EVENT_OF_ENTRY, EntryType
from system.recording.executions.log_record import LogRecord, ParsedLogRecord
from system.recording.records.event import EventType, ExecutionEvent
from system.recording.records.frozen_json import FrozenJson
from system.recording.records.header import Reason, StartHeader
from system.recording.records.record import ExecutionRecord
from system.recording.records.record_members import header_from_dict

_ENVELOPE: Final = b'{"envelope":'
_HEADER: Final = b',"header":{"createdUtcIso":'


class RecordBuilder:
    """The state of an execution after some log records; ``start`` is None before the first one.

    ``reason`` says why it cannot be replayed, or is None. ``kept`` are the log records that have
    changed anything.
    """

    def __init__(self) -> None:
        self.start: StartHeader | None = None
        self.envelope = FrozenJson(b"{}")
        self.events: list[ExecutionEvent] = []
        self.response: FrozenJson | None = None
        self.reason: str | None = Reason.EXECUTION_INCOMPLETE
        self.kept: list[LogRecord] = []
        # The number of the last event, or 0.
        self.last_seq = 0
        self.last_type: EventType | None = None

    @classmethod
    def of(cls, log_records: Iterable[LogRecord]) -> RecordBuilder:
        """Return the state after these log records; raises as ``take``."""
        builder = cls()
        for log_record in log_records:
            builder.take(log_record)
        return builder

    def take(self, log_record: LogRecord) -> None:
        """Take the next log record; ``ValueError`` for other bytes, or for one before the start."""
        parsed = log_record.parsed()
        if parsed is None:
            raise ValueError("it is not a log record of an execution")
        self.take_parsed(log_record, parsed)

    def take_parsed(self, log_record: LogRecord, parsed: ParsedLogRecord) -> None:
        """Take the next log record, which was parsed; ``ValueError`` as ``take``."""
        if log_record.entry_type == EntryType.START:
            self._begin(log_record, parsed)
        elif self.start is None:
            raise ValueError("its start is missing")
        elif log_record.entry_type == EntryType.NOT_REPLAYABLE:
            self.mark(str(loads(parsed.payload)))
            self.kept.append(log_record)
        elif log_record.entry_type in EVENT_OF_ENTRY:
            self._take_event(EVENT_OF_ENTRY[log_record.entry_type], log_record, parsed)

    def _begin(self, log_record: LogRecord, parsed: ParsedLogRecord) -> None:
        if self.start is None:
            envelope, header = _split(parsed.payload)
            self.start = StartHeader.of_header(header_from_dict(loads(header)))
            self.envelope = FrozenJson(envelope)
            self.kept.append(log_record)

    def _take_event(
        self, event_type: EventType, log_record: LogRecord, parsed: ParsedLogRecord
    ) -> None:
        number, following = parsed.number, self.last_seq + 1
        if self.response is not None or number < following:
            return
        if parsed.reason is not None:
            self.mark(loads(parsed.reason))
        if number > following:
            if self.reason == Reason.RECORDING_FAILURE:
                # The lost events were never acknowledged: the final response takes their place.
                number = following
            else:
                self.reason = Reason.RECORD_CORRUPTED
        event = ExecutionEvent(number, event_type, FrozenJson(parsed.payload), parsed.timestamp)
        self.events.append(event)
        self.kept.append(log_record)
        self.last_seq, self.last_type = number, event_type
        if event_type == EventType.FINAL_RESPONSE:
            self.response = event.frozen_payload
            if self.reason == Reason.EXECUTION_INCOMPLETE:
                self.reason = None

    def mark(self, reason: str) -> None:
        """Set the reason; it does not replace a loss of events or damage."""
        if self.reason not in {Reason.RECORDING_FAILURE, Reason.RECORD_CORRUPTED}:
            self.reason = reason

    def record(self) -> ExecutionRecord:
        """Return the sealed record; the start must have been taken."""
        assert self.start is not None
        header = self.start.header(self.reason)
        return ExecutionRecord(header, self.envelope, tuple(self.events), self.response).sealed()


def start_payload(start: StartHeader, envelope: bytes) -> bytes:
    """Return the payload of the log record that starts an execution; ``envelope`` is JSON."""
    return b'{"envelope":%s,"header":%s}' % (envelope, start.encoded())


def _split(payload: bytes) -> tuple[bytes, bytes]:
    """Return envelope and header of a start, both as canonical JSON."""
    # The text of the header begins with its first member, and is the last one that does so.
    end = payload.rfind(_HEADER)
    if not payload.startswith(_ENVELOPE) or end < 0:
        raise ValueError("it is no start of an execution")
    return payload[len(_ENVELOPE) : end], payload[end + len(b',"header":') : -1]
