"""One execution under way: its states, its events, and the record that they make.

new → started → finished. Both recorders keep their execution here and differ only in where
they write it.
"""

from __future__ import annotations

from dataclasses import replace

from system.ports import Clock
from system.recording.deterministic_clock import DeterministicClock
from system.recording.envelope_hash import hash_of_envelope
from system.recording.errors import RecorderError
from system.recording.event import EventType, ExecutionEvent
from system.recording.event_order import order_problem
from system.recording.frozen_json import FrozenJson
from system.recording.header import ExecutionHeader, Reason, SideEffectClass
from system.recording.invalidation import is_text
from system.recording.record import ExecutionRecord
from system.storage.line import timestamp


class Execution:
    """An execution that has started.

    ``next_event`` and ``final_event`` check and return an event; ``add`` takes it into the
    record. A recorder writes the event between the two.
    """

    def __init__(
        self,
        clock: Clock,
        execution_id: str,
        envelope: FrozenJson,
        side_effects: SideEffectClass,
        re_execution_of: str | None,
    ) -> None:
        self.header = ExecutionHeader(
            execution_id=execution_id,
            created_utc_iso=timestamp(clock.wall_ns()),
            envelope_hash=hash_of_envelope(envelope),
            side_effects=side_effects,
            re_execution_of=re_execution_of,
        )
        self.envelope = envelope
        self.events: list[ExecutionEvent] = []
        self.response: FrozenJson | None = None
        self.has_lost_events = False
        self._clock = clock
        self._numbers = DeterministicClock()

    @property
    def is_finished(self) -> bool:
        """Whether the final response is recorded."""
        return self.response is not None

    def next_event(self, event_type: EventType, payload: object) -> ExecutionEvent:
        """Return the next event; raises ``RecorderError`` or ``NotPlainJson``."""
        self.check_open()
        if event_type not in frozenset(EventType):
            raise RecorderError(f"Cannot record an event of unknown type {event_type!r:.100}")
        if event_type == EventType.FINAL_RESPONSE:
            raise RecorderError("Cannot record FINAL_RESPONSE; finalize does")
        if self.has_lost_events:
            raise RecorderError("Cannot record after a lost event; only finalize may follow")
        return self._event(event_type, FrozenJson.of(payload), failed=False)

    def final_event(self, response: object) -> ExecutionEvent:
        """Return the event of the final response; raises as ``next_event``."""
        self.check_open()
        frozen = FrozenJson.of_object(response, "final response")
        failed = self.has_lost_events or frozen.members().get("status") == "error"
        return self._event(EventType.FINAL_RESPONSE, frozen, failed=failed)

    def _event(self, event_type: EventType, payload: FrozenJson, *, failed: bool) -> ExecutionEvent:
        previous = self.events[-1].type if self.events else None
        if problem := order_problem(previous, event_type, failed=failed):
            raise RecorderError(f"Cannot record: {problem}")
        now = timestamp(self._clock.wall_ns())
        return ExecutionEvent(self._numbers.current() + 1, event_type, payload, now)

    def add(self, event: ExecutionEvent) -> None:
        """Take an event into the record; that of the final response ends the execution.

        The reason of the header is lifted only if it is still ``execution_incomplete``.
        """
        number = self._numbers.next()
        assert number == event.seq
        self.events.append(event)
        if event.type != EventType.FINAL_RESPONSE:
            return
        self.response = event.frozen_payload
        if self.header.replayable_reason == Reason.EXECUTION_INCOMPLETE:
            self.header = replace(self.header, replayable=True, replayable_reason=None)

    def mark_not_replayable(self, reason: str) -> None:
        """Set the reason of the header; a loss of events stays its reason."""
        if not self.has_lost_events:
            self.header = replace(self.header, replayable_reason=reason)

    def check_reason(self, reason: str) -> None:
        """Raise ``RecorderError`` for a reason that is no text, or after the final response."""
        self.check_open()
        if not is_text(reason):
            raise RecorderError(f"Cannot mark with reason={reason!r:.100}; give a text")

    def lose_events(self) -> None:
        """Note that an event could not be written; only the final response may follow."""
        self.has_lost_events = True
        self.header = replace(self.header, replayable_reason=Reason.RECORDING_FAILURE)

    def check_open(self) -> None:
        """Raise ``RecorderError`` after the final response."""
        if self.is_finished:
            raise RecorderError("Cannot record after finalization")

    def record(self) -> ExecutionRecord:
        """Return the record of everything so far, sealed."""
        return ExecutionRecord(
            self.header, self.envelope, tuple(self.events), self.response
        ).sealed()
