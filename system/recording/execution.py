"""One execution under way: its states, its events, and the record that they make.

new → started → finished. Both recorders keep their execution here and differ only in where
they write it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from system.ports import Clock, SideEffectClass
from system.recording.deterministic_clock import DeterministicClock
from system.recording.envelope_hash import hash_of_envelope
from system.recording.errors import EventLost, RecorderError
from system.recording.event import EventType, ExecutionEvent
from system.recording.event_list import EventList, StoredEvent, StoredJson
from system.recording.event_order import order_problem
from system.recording.frozen_json import FrozenJson
from system.recording.header import ExecutionHeader, Reason
from system.recording.invalidation import is_text
from system.recording.json_pieces import canonical_pieces
from system.recording.long_text import has_long_text
from system.recording.record import ExecutionRecord
from system.recording.record_writer import RecordView, whole_events
from system.recording.spool import Spool
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
        self.events = EventList(header.envelope_hash)
        self.response: FrozenJson | StoredJson | None = None
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

    def keep_long_parts_in(self, make_spool: Callable[[], Spool], most_bytes: int) -> None:
        """Keep long texts, and payloads of more than ``most_bytes``, in a spool."""
        self.events.make_spool, self.events.most_bytes = make_spool, most_bytes

    def next_event(self, event_type: EventType, payload: object) -> ExecutionEvent | StoredEvent:
        """Return the next event; raises ``RecorderError`` or ``NotPlainJson``.

        A long text raises ``OSError`` if the disk refuses it.
        """
        self.check_open()
        if event_type not in _EVENT_TYPES:
            raise RecorderError(f"Cannot record an event of unknown type {event_type!r:.100}")
        if event_type == EventType.FINAL_RESPONSE:
            raise RecorderError("Cannot record FINAL_RESPONSE; finalize does")
        if self.has_lost_events:
            raise EventLost(self.execution_id, "an earlier event of this execution is lost")
        self._check_order(event_type, failed=False)
        return self._event(event_type, payload)

    def final_event(self, response: object) -> ExecutionEvent | StoredEvent:
        """Return the event of the final response; raises as ``next_event``."""
        self.check_open()
        failed, is_long = self.has_lost_events, has_long_text(response)
        if is_long and isinstance(response, dict):
            failed |= response.get("status") == "error"
        else:
            response = FrozenJson.of_object(response, "final response")
            if not failed and b'"status":"error"' in response.encoded:
                failed = response.members().get("status") == "error"
        self._check_order(EventType.FINAL_RESPONSE, failed=failed)
        return self._event(EventType.FINAL_RESPONSE, response)

    def _check_order(self, event_type: EventType, *, failed: bool) -> None:
        if problem := order_problem(self.events.last_type, event_type, failed=failed):
            raise RecorderError(f"Cannot record: {problem}")

    def _event(self, event_type: EventType, payload: object) -> ExecutionEvent | StoredEvent:
        number, now = self._numbers.current() + 1, self.now()
        if self.events.make_spool is not None and has_long_text(payload):
            return self.events.store(number, event_type, now, canonical_pieces(payload))
        frozen = payload if isinstance(payload, FrozenJson) else FrozenJson.of(payload)
        return ExecutionEvent(number, event_type, frozen, now)

    def now(self) -> str:
        """Return the wall-clock time in the form that events have."""
        return timestamp(self._clock.wall_ns())

    def add(self, event: ExecutionEvent | StoredEvent) -> None:
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

    def _take(self, event: ExecutionEvent | StoredEvent) -> None:
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

    def record(self, events: tuple[ExecutionEvent, ...] | None = None) -> ExecutionRecord:
        """Return the record of everything so far, sealed.

        ``events`` are all of them, if the caller has them in memory. Raises ``OSError`` if long
        parts are gone.
        """
        return self.view().record(events)

    def whole_events(self, last: ExecutionEvent | StoredEvent) -> tuple[ExecutionEvent, ...]:
        """Return all events and the one that follows, in memory; raises as ``record``."""
        if isinstance(last, StoredEvent):
            last = ExecutionEvent(last.seq, last.type, last.frozen_payload.frozen(), last.timestamp)
        return (*whole_events(self.events.now()), last)

    def view(self) -> RecordView:
        """Return everything so far, to be written; later events do not change it."""
        return RecordView(
            self.header, self.envelope, self.events.now(), self.response, self.events.route
        )
