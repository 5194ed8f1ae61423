"""One execution: its states, and its log records, from which its record is computed on a read.

new → started → finished. Both recorders keep their execution in this class; they differ only in
where they write its log records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import Final, NamedTuple

from system.foreign import shown
from system.ports import Clock, SideEffectClass
from system.recording.executions.deterministic_clock import DeterministicClock
from system.recording.executions.entry_type import ENTRY_OF_EVENT, EVENT_OF_ENTRY, EntryType
from system.recording.executions.log_record import (
    LogRecord,
    StoredLogRecord,
    encoded_log_record,
    end_of_log_record,
)
from system.recording.executions.log_record_list import LogRecordList, LogRecords
from system.recording.executions.record_builder import RecordBuilder, start_payload
from system.recording.executions.spool import Spool
from system.recording.records.envelope_hash import FrozenEnvelope
from system.recording.records.errors import EventLost, RecorderError
from system.recording.records.event import EventType
from system.recording.records.event_order import AFTER, EVENTS_AFTER, order_problem
from system.recording.records.frozen_json import FrozenJson
from system.recording.records.header import Reason, StartHeader
from system.recording.records.invalidation import is_text
from system.recording.records.json_pieces import canonical_pieces
from system.recording.records.long_text import has_long_text
from system.recording.records.record import ExecutionRecord
from system.storage.codec import canonical
from system.storage.line import timestamp

_START: Final = int(EntryType.START)
# In Python 3.11 the look-up of a member of an enum takes longer than a call.
_FINAL: Final = EventType.FINAL_RESPONSE
_INCOMPLETE: Final = Reason.EXECUTION_INCOMPLETE
_LOST: Final = Reason.RECORDING_FAILURE
_EVENT_TYPES: Final = tuple(each for each in EventType if each is not EventType.FINAL_RESPONSE)
_IS_FINISHED: Final = "Cannot record after finalization"
_REASONS: Final = frozenset(map(str, Reason))
_NEVER_LIFTED: Final = frozenset((Reason.RECORDING_FAILURE, Reason.RECORD_CORRUPTED))


class ExecutionView(NamedTuple):
    """An execution at one moment; later log records do not change it.

    ``last_entry`` is the number of its last entry in a write-ahead log.
    """

    execution_id: str
    envelope_hash: str
    log_records: LogRecords
    reason: str | None
    now: str
    last_entry: int

    @property
    def is_long(self) -> bool:
        """Whether some of its log records are in a spool."""
        return self.log_records.spool is not None

    def pieces(self) -> Iterable[bytes]:
        """Yield the lines of its log records; raises ``OSError`` if long parts cannot be read.

        A reason that no log record gives, because one was refused by the disk or damaged, has a
        line of its own.
        """
        lines = self.log_records.pieces()
        if self.reason not in _NEVER_LIFTED:
            return lines
        return chain(lines, [_mark(self.execution_id, 0, str(self.reason), self.now).line()])

    def verified_pieces(self) -> Iterator[bytes]:
        """Yield as ``pieces``, after all of them were read once.

        A call of ``close`` has no effect until then.
        """
        spool = self.log_records.spool
        with nullcontext() if spool is None else spool.kept_open():
            for _ in self.pieces():
                pass
            yield from self.pieces()

    def record(self) -> ExecutionRecord:
        """Return the sealed record, all of it in memory; raises as ``pieces``."""
        builder = RecordBuilder.of(self.log_records.all())
        builder.reason = self.reason
        return builder.record()

    def close(self) -> None:
        """Release the spool."""
        if self.log_records.spool is not None:
            self.log_records.spool.close()


class Execution:
    """An execution that has started.

    ``next_event``, ``final_event`` and ``next_mark`` check and return a log record; ``add`` adds it
    to the execution. A recorder writes the log record between the two calls. ``last_event`` is the
    type of the last event, or None; ``reason`` says why it cannot be replayed, or is None.
    """

    __slots__ = (
        "_clock", "_created", "_numbers", "envelope_hash", "execution_id", "last_entry",
        "last_event", "log_records", "reason", "start_entry",
    )  # fmt: skip

    def __init__(
        self, clock: Clock, start: StartHeader, log_records: list[LogRecord],
        last_event: EventType | None, last_number: int,
    ) -> None:  # fmt: skip
        self.execution_id: Final = start.execution_id
        self.envelope_hash: Final = start.envelope_hash
        self.log_records: Final = LogRecordList(log_records)
        self.last_event = last_event
        self.reason: str | None = _INCOMPLETE
        # The numbers in a write-ahead log of the last entry of its start, and of its last entry.
        self.start_entry = self.last_entry = 0
        self._clock = clock
        self._created = start.created_utc_iso
        self._numbers = DeterministicClock(last_number)

    @classmethod
    def new(
        cls,
        clock: Clock,
        execution_id: str,
        envelope: FrozenEnvelope,
        side_effects: SideEffectClass,
        re_execution_of: str | None = None,
        created_utc_iso: str | None = None,
        events: Sequence[tuple[EventType, object]] = (),
    ) -> Execution:
        """Return an execution that starts now, or has started at ``created_utc_iso``.

        ``events`` are its first ones, of the same time; raises as ``next_event`` for them.
        """
        created = created_utc_iso or timestamp(clock.wall_ns())
        side_effects = SideEffectClass(side_effects)
        start = StartHeader(execution_id, created, envelope.hash, side_effects, re_execution_of)
        end, last_event = end_of_log_record(execution_id, created), None
        log_records = [
            LogRecord(_START, encoded_log_record(0, start_payload(start, envelope.encoded), end))
        ]
        for number, (event_type, value) in enumerate(events, 1):
            if event_type not in EVENTS_AFTER[last_event]:
                raise _refusal(last_event, event_type)
            encoded = encoded_log_record(number, FrozenJson.of(value).encoded, end)
            log_records.append(LogRecord(ENTRY_OF_EVENT[event_type], encoded))
            last_event = event_type
        return cls(clock, start, log_records, last_event, len(events))

    @classmethod
    def resumed(cls, clock: Clock, builder: RecordBuilder) -> Execution:
        """Return the execution that has the log records of a builder, which has taken its start."""
        assert builder.start is not None
        execution = cls(
            clock, builder.start, list(builder.kept), builder.last_type, builder.last_seq
        )
        execution.reason = builder.reason
        return execution

    @property
    def event_count(self) -> int:
        """The number of its events."""
        return self._numbers.current()

    @property
    def has_lost_events(self) -> bool:
        """Whether an event could not be written; only the final response may follow."""
        return self.reason == _LOST

    @property
    def is_corrupted(self) -> bool:
        """Whether an event is missing because of damage."""
        return self.reason == Reason.RECORD_CORRUPTED

    @property
    def is_finished(self) -> bool:
        """Whether the final response is recorded."""
        return self.last_event == _FINAL

    def keep_long_parts_in(self, make_spool: Callable[[], Spool], most_bytes: int) -> None:
        """Keep long texts, and log records of more than ``most_bytes``, in a spool."""
        self.log_records.make_spool, self.log_records.most_bytes = make_spool, most_bytes

    # -- events --------------------------------------------------------------------------

    def next_event(
        self, event_type: EventType, payload: object, now: str | None = None
    ) -> LogRecord | StoredLogRecord:
        """Return the next event, of the time ``now``; raises ``RecorderError`` or ``NotPlainJson``.

        A long text raises ``OSError`` if the disk refuses it.
        """
        self.check_next(event_type)
        return self._event(event_type, payload, now or self.now())

    def check_next(self, event_type: EventType) -> None:
        """Raise the error for an event that may not come next; raises as ``next_event``."""
        if event_type in EVENTS_AFTER[self.last_event] and self.reason != _LOST:
            return
        if self.has_lost_events and not self.is_finished and event_type in _EVENT_TYPES:
            raise EventLost(self.execution_id, "an earlier event of this execution is lost")
        raise _refusal(self.last_event, event_type)

    def final_event(self, response: object) -> LogRecord | StoredLogRecord:
        """Return the event of the final response; raises as ``next_event``."""
        if _FINAL not in AFTER[self.last_event]:
            self._check_early_end(response)
        if not (isinstance(response, dict) and has_long_text(response)):
            response = FrozenJson.of_object(response, "final response")
        return self._event(_FINAL, response, self.now(), self._mark_of_final())

    def _check_early_end(self, response: object) -> None:
        """Raise the error for a final response that may not come now."""
        self.check_open()
        failed = self.has_lost_events
        if isinstance(response, dict) and has_long_text(response):
            failed |= response.get("status") == "error"
        else:
            members = FrozenJson.of_object(response, "final response").members()
            failed |= members.get("status") == "error"
        if problem := order_problem(self.last_event, _FINAL, failed=failed):
            raise RecorderError(f"Cannot record: {problem}")

    def _mark_of_final(self) -> bytes | None:
        """Return the reason to repeat in the final response, or None."""
        is_lifted = self.reason == _INCOMPLETE
        return None if is_lifted else canonical(str(self.reason))

    def _event(
        self, event_type: EventType, payload: object, now: str, reason: bytes | None = None
    ) -> LogRecord | StoredLogRecord:
        number, entry_type = self._numbers.current() + 1, ENTRY_OF_EVENT[event_type]
        end = end_of_log_record(self.execution_id, now)
        if not isinstance(payload, FrozenJson):
            if self.log_records.make_spool is not None and has_long_text(payload):
                head = encoded_log_record(number, b"", b"", reason)
                pieces = chain((head,), canonical_pieces(payload), (end,))
                return self.log_records.store(entry_type, pieces)
            payload = FrozenJson.of(payload)
        return LogRecord(entry_type, encoded_log_record(number, payload.encoded, end, reason))

    def now(self) -> str:
        """Return the wall-clock time in the form that events have."""
        return timestamp(self._clock.wall_ns())

    def add(self, log_record: LogRecord | StoredLogRecord) -> None:
        """Add the next event to the execution; that of the final response ends it.

        The final response removes the reason if it is still ``execution_incomplete``.
        """
        self._numbers.next()
        self.log_records.append(log_record)
        self.last_event = EVENT_OF_ENTRY[log_record.entry_type]
        if self.last_event == _FINAL and self.reason == _INCOMPLETE:
            self.reason = None

    def add_event(self, event_type: EventType, payload: FrozenJson, now: str) -> None:
        """Add an event that recovery has found elsewhere, in any order."""
        reason = self._mark_of_final() if event_type == _FINAL else None
        self.add(self._event(event_type, payload, now, reason))

    # -- reasons -------------------------------------------------------------------------

    def next_mark(self, reason: str) -> LogRecord:
        """Return the log record of a reason; ``RecorderError`` for no text or one of ``Reason``."""
        self.check_open()
        if not is_text(reason):
            raise RecorderError(f"Cannot mark with reason={shown(reason, 100)}; give a text")
        if reason in _REASONS:
            raise RecorderError(f"Cannot mark with reason={reason!r}, which a recorder sets itself")
        return _mark(self.execution_id, self._numbers.current(), reason, self.now())

    def add_mark(self, log_record: LogRecord, reason: str) -> None:
        """Set the reason of the execution; it does not replace a loss of events."""
        self.log_records.append(log_record)
        if self.reason not in _NEVER_LIFTED:
            self.reason = reason

    def lose_events(self) -> None:
        """Record that an event could not be written."""
        self.reason = _LOST

    def check_open(self) -> None:
        """Raise ``RecorderError`` after the final response."""
        if self.last_event == _FINAL:
            raise RecorderError(_IS_FINISHED)

    # -- the record ----------------------------------------------------------------------

    def view(self) -> ExecutionView:
        """Return the execution at this moment, to be written; later changes do not affect it."""
        return ExecutionView(
            self.execution_id, self.envelope_hash, self.log_records.now(), self.reason,
            self._created, self.last_entry,
        )  # fmt: skip

    def record(self, log_records: Iterable[LogRecord] | None = None) -> ExecutionRecord:
        """Return the sealed record of all log records so far.

        ``log_records`` are all of them, if the caller has them in memory. Raises ``OSError`` if
        long parts cannot be read.
        """
        builder = RecordBuilder.of(
            self.log_records.now().all() if log_records is None else log_records
        )
        builder.reason = self.reason
        return builder.record()

    def log_records_with(self, last: LogRecord | StoredLogRecord) -> list[LogRecord]:
        """Return all log records, followed by ``last``, in memory; raises as ``record``."""
        final = last.whole() if isinstance(last, StoredLogRecord) else last
        return [*self.log_records.now().all(), final]


def _refusal(last_event: EventType | None, event_type: EventType) -> RecorderError:
    """Return the error for an event that may not follow ``last_event``."""
    if last_event == _FINAL:
        return RecorderError(_IS_FINISHED)
    if event_type == _FINAL:
        return RecorderError("Cannot record FINAL_RESPONSE; finalize does")
    if event_type not in _EVENT_TYPES:
        return RecorderError(f"Cannot record an event of unknown type {shown(event_type, 100)}")
    return RecorderError(f"Cannot record: {order_problem(last_event, event_type)}")


def _mark(execution_id: str, number: int, reason: str, now: str) -> LogRecord:
    encoded = encoded_log_record(number, canonical(reason), end_of_log_record(execution_id, now))
    return LogRecord(EntryType.NOT_REPLAYABLE, encoded)
