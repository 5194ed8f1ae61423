"""One execution under way: its states, its events, and the record that they make.

new → started → finished. Both recorders keep their execution here and differ only in where
they write it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from system.ports import Clock, SideEffectClass
from system.recording.deterministic_clock import DeterministicClock
from system.recording.envelope_hash import hash_of_envelope
from system.recording.errors import EventLost, RecorderError
from system.recording.event import EventType, ExecutionEvent
from system.recording.event_order import order_problem
from system.recording.frozen_json import FrozenJson
from system.recording.header import ExecutionHeader, Reason
from system.recording.invalidation import is_text
from system.recording.record import ExecutionRecord
from system.storage.line import timestamp

_EVENT_TYPES: Final = frozenset(EventType)


class Execution:
    """An execution that has started.

    ``next_event`` and ``final_event`` check and return an event; ``add`` takes it into the
    record. A recorder writes the event between the two.
    """

    def __init__(self, clock: Clock, header: ExecutionHeader, envelope: FrozenJson) -> None:
        self.header = header
        self.envelope = envelope
        self.events: list[ExecutionEvent] = []
        self.response: FrozenJson | None = None
        # The numbers of its first and its last entry in a write-ahead log.
        self.first_entry = self.last_entry = 0
        self._clock = clock
        self._numbers = DeterministicClock()

    @classmethod
    def new(
        cls,
        clock: Clock,
        execution_id: str,
        envelope: FrozenJson,
        side_effects: SideEffectClass,
        re_execution_of: str | None = None,
        created_utc_iso: str | None = None,
    ) -> Execution:
        """Return an execution that starts now, or has started at ``created_utc_iso``."""
        header = ExecutionHeader(
            execution_id=execution_id,
            created_utc_iso=created_utc_iso or timestamp(clock.wall_ns()),
            envelope_hash=hash_of_envelope(envelope),
            side_effects=SideEffectClass(side_effects),
            re_execution_of=re_execution_of,
        )
        return cls(clock, header, envelope)

    @property
    def execution_id(self) -> str:
        """The id of the execution."""
        return self.header.execution_id

    @property
    def has_lost_events(self) -> bool:
        """Whether an event could not be written; only the final response may follow."""
        return self.header.replayable_reason == Reason.RECORDING_FAILURE

    @property
    def is_finished(self) -> bool:
        """Whether the final response is recorded."""
        return self.response is not None

    def next_event(self, event_type: EventType, payload: object) -> ExecutionEvent:
        """Return the next event; raises ``RecorderError`` or ``NotPlainJson``."""
        self.check_open()
        if event_type not in _EVENT_TYPES:
            raise RecorderError(f"Cannot record an event of unknown type {event_type!r:.100}")
        if event_type == EventType.FINAL_RESPONSE:
            raise RecorderError("Cannot record FINAL_RESPONSE; finalize does")
        if self.has_lost_events:
            raise EventLost(self.execution_id, "an earlier event of this execution is lost")
        return self._event(event_type, FrozenJson.of(payload), failed=False)

    def final_event(self, response: object) -> ExecutionEvent:
        """Return the event of the final response; raises as ``next_event``."""
        self.check_open()
        frozen = FrozenJson.of_object(response, "final response")
        failed = self.has_lost_events or b'"status":"error"' in frozen.encoded
        if failed and not self.has_lost_events:
            failed = frozen.members().get("status") == "error"
        return self._event(EventType.FINAL_RESPONSE, frozen, failed=failed)

    def _event(self, event_type: EventType, payload: FrozenJson, *, failed: bool) -> ExecutionEvent:
        previous = self.events[-1].type if self.events else None
        if problem := order_problem(previous, event_type, failed=failed):
            raise RecorderError(f"Cannot record: {problem}")
        return ExecutionEvent(self._numbers.current() + 1, event_type, payload, self.now())

    def now(self) -> str:
        """Return the wall-clock time in the form that events have."""
        return timestamp(self._clock.wall_ns())

    def add(self, event: ExecutionEvent) -> None:
        """Take the next event into the record; that of the final response ends the execution.

        The reason of the header is lifted only if it is still ``execution_incomplete``.
        """
        number = self._numbers.next()
        assert number == event.seq
        self._take(event)

    def redo(self, event: ExecutionEvent) -> None:
        """Take an event of a log into the record; its number may leave a gap."""
        self._numbers = DeterministicClock(event.seq)
        self._take(event)

    def _take(self, event: ExecutionEvent) -> None:
        self.events.append(event)
        if event.type != EventType.FINAL_RESPONSE:
            return
        self.response = event.frozen_payload
        if self.header.replayable_reason == Reason.EXECUTION_INCOMPLETE:
            self.header = replace(self.header, replayable=True, replayable_reason=None)

    def mark_not_replayable(self, reason: str) -> None:
        """Set the reason of the header; a loss of events stays its reason."""
        if not (self.has_lost_events or self.is_corrupted):
            self.header = replace(self.header, replayable_reason=reason)

    def check_reason(self, reason: str) -> None:
        """Raise ``RecorderError`` for a reason that is no text, or after the final response."""
        self.check_open()
        if not is_text(reason):
            raise RecorderError(f"Cannot mark with reason={reason!r:.100}; give a text")

    def lose_events(self) -> None:
        """Note that an event could not be written."""
        self.header = replace(self.header, replayable_reason=Reason.RECORDING_FAILURE)

    def corrupt(self) -> None:
        """Note that damage has taken an event."""
        self.header = replace(self.header, replayable_reason=Reason.RECORD_CORRUPTED)

    @property
    def is_corrupted(self) -> bool:
        """Whether damage has taken an event."""
        return self.header.replayable_reason == Reason.RECORD_CORRUPTED

    def check_open(self) -> None:
        """Raise ``RecorderError`` after the final response."""
        if self.is_finished:
            raise RecorderError("Cannot record after finalization")

    def record(self) -> ExecutionRecord:
        """Return the record of everything so far, sealed."""
        return ExecutionRecord(
            self.header, self.envelope, tuple(self.events), self.response
        ).sealed()
