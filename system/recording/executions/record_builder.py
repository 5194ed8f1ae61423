"""The record of an execution, computed from its facts (docs/recording.md, A fact).

Taking a fact twice changes nothing, because events are numbered. A snapshot and the log after it
may have the same facts.
"""

from __future__ import annotations

from collections.abc import Iterable
from json import loads
from typing import Final

from system.recording.executions.entry_type import EVENT_OF_ENTRY, EntryType
from system.recording.executions.fact import Fact, ParsedFact
from system.recording.records.event import EventType, ExecutionEvent
from system.recording.records.frozen_json import FrozenJson
from system.recording.records.header import Reason, StartFacts
from system.recording.records.record import ExecutionRecord
from system.recording.records.record_members import header_from_dict

_ENVELOPE: Final = b'{"envelope":'
_HEADER: Final = b',"header":{"createdUtcIso":'


class RecordBuilder:
    """The state of an execution after some facts; ``start`` is None before the first one.

    ``reason`` says why it cannot be replayed, or is None. ``kept`` are the facts that have
    changed anything.
    """

    def __init__(self) -> None:
        self.start: StartFacts | None = None
        self.envelope = FrozenJson(b"{}")
        self.events: list[ExecutionEvent] = []
        self.response: FrozenJson | None = None
        self.reason: str | None = Reason.EXECUTION_INCOMPLETE
        self.kept: list[Fact] = []
        # The number of the last event, or 0.
        self.last_seq = 0
        self.last_type: EventType | None = None

    @classmethod
    def of(cls, facts: Iterable[Fact]) -> RecordBuilder:
        """Return the state after these facts; raises as ``take``."""
        builder = cls()
        for fact in facts:
            builder.take(fact)
        return builder

    def take(self, fact: Fact) -> None:
        """Take the next fact; ``ValueError`` for other bytes, and for a fact before the start."""
        parsed = fact.parsed()
        if parsed is None:
            raise ValueError("it is not a fact of an execution")
        self.take_parsed(fact, parsed)

    def take_parsed(self, fact: Fact, parsed: ParsedFact) -> None:
        """Take the next fact, which was parsed; ``ValueError`` as ``take``."""
        if fact.entry_type == EntryType.START:
            self._begin(fact, parsed)
        elif self.start is None:
            raise ValueError("its start is missing")
        elif fact.entry_type == EntryType.NOT_REPLAYABLE:
            self.mark(str(loads(parsed.payload)))
            self.kept.append(fact)
        elif fact.entry_type in EVENT_OF_ENTRY:
            self._take_event(EVENT_OF_ENTRY[fact.entry_type], fact, parsed)

    def _begin(self, fact: Fact, parsed: ParsedFact) -> None:
        if self.start is None:
            envelope, header = _split(parsed.payload)
            self.start = StartFacts.of_header(header_from_dict(loads(header)))
            self.envelope = FrozenJson(envelope)
            self.kept.append(fact)

    def _take_event(self, event_type: EventType, fact: Fact, parsed: ParsedFact) -> None:
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
        self.kept.append(fact)
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


def start_payload(start: StartFacts, envelope: FrozenJson) -> bytes:
    """Return the payload of the fact that starts an execution."""
    return b'{"envelope":%s,"header":%s}' % (envelope.encoded, start.encoded())


def _split(payload: bytes) -> tuple[bytes, bytes]:
    """Return envelope and header of a start, both as canonical JSON."""
    # The text of the header begins with its first member, and is the last one that does so.
    end = payload.rfind(_HEADER)
    if not payload.startswith(_ENVELOPE) or end < 0:
        raise ValueError("it is no start of an execution")
    return payload[len(_ENVELOPE) : end], payload[end + len(b',"header":') : -1]
