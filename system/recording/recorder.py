"""The recorder of one execution: its interface, its states, and a recorder in memory.

new → started → finished. ``Recorder`` implements the states; a backend writes the entries.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from system.errors import StorageError
from system.foreign import shown
from system.ports import Clock, Ids, SideEffectClass
from system.recording.executions.execution import Execution
from system.recording.executions.log_record import LogRecord, StoredLogRecord
from system.recording.records.envelope_hash import FrozenEnvelope
from system.recording.records.errors import RecorderError
from system.recording.records.event import EventType
from system.recording.records.execution_id import checked_rate, is_sampled, new_execution_id
from system.recording.records.invalidation import is_text
from system.recording.records.record import ExecutionRecord
from system.recording.stores.memory_store import InMemoryExecutionStore

_KEPT_IN_MEMORY: Final = suppress(OSError, StorageError)
"""For a response that the disk refuses: the next checkpoint writes the record from memory."""


class ExecutionRecorder(Protocol):
    """Records one execution: ``start``, ``record_event`` for each event, ``finalize``.

    A value may have a ``LongText`` in place of a str; a recorder with a disk keeps neither it nor
    the events of a long execution in memory.
    Calls in another order raise ``RecorderError``. A value that is not plain JSON raises
    ``NotPlainJson``, and nothing is recorded. At a sample rate below 1.0 some executions
    get an id and no record: their calls do nothing.
    """

    def start(
        self,
        envelope: object,
        side_effects: SideEffectClass = SideEffectClass.IRREVERSIBLE,
        re_execution_of: str | None = None,
        events: Sequence[tuple[EventType, object]] = (),
    ) -> str:
        """Begin the record of an envelope, a JSON object; return the id of the execution.

        A ``FrozenEnvelope``, and payloads that are ``FrozenJson``, are not checked again.

        ``events`` are the first events, which are written together with the start. Raises
        ``StorageError`` or ``OSError``, and then nothing has begun.
        """
        ...

    def record_event(self, event_type: EventType, payload: object) -> None:
        """Append an event, in the order of ``event_order.py``; it survives a kill.

        After ``StorageError`` or ``OSError`` the event is lost, the reason of the record is
        ``recording_failure``, further events raise ``EventLost``, and ``finalize`` may follow.
        """
        ...

    def mark_not_replayable(self, reason: str) -> None:
        """Set why the execution cannot be replayed: a text, not one of ``Reason``.

        No-op before start.
        """
        ...

    async def barrier(self) -> None:
        """Make everything that was appended durable; raises ``BarrierFailed``."""
        ...

    def complete(self, final_response: object) -> ExecutionRecord | None:
        """Append the final response without a barrier; return the record.

        For a caller whose own log has made the response durable. If the disk refuses the
        response, no error is raised, because the next checkpoint writes the record, or recovery
        does from that log. Raises ``OSError``, with nothing recorded, if the parts of a long
        execution cannot be kept or read. Returns None if the execution was sampled out.
        """
        ...

    async def finalize(self, final_response: object) -> ExecutionRecord | None:
        """Append the final response, and return the record when it is durable.

        Returns None if the execution was sampled out. May be called again after ``StorageFull``
        or ``OSError``. After ``BarrierFailed`` it is unknown, until the next checkpoint, whether
        the response is durable.
        """
        ...

    async def end(self, final_response: object) -> None:
        """Do the same as ``finalize``, for a caller that does not need the record in memory."""
        ...


class RecorderBackend(Protocol):
    """Where executions are written. The writing calls raise ``StorageError`` or ``OSError``."""

    def has(self, execution_id: str) -> bool:
        """Return whether the id is in use."""
        ...

    def begin(self, execution: Execution, *, at_once: bool) -> None:
        """Write the log records that an execution has at its start, as ``append``."""
        ...

    def prepare(self) -> None:
        """Prepare to write a log record; afterwards executions may have lost events."""
        ...

    def append(
        self, execution: Execution, log_record: LogRecord | StoredLogRecord, *, at_once: bool
    ) -> None:
        """Write a log record, after ``prepare`` and before it is added to the execution.

        If not ``at_once``, it is written with other log records, and the execution loses it if that
        is refused.
        """
        ...

    def barrier(self, execution: Execution) -> Awaitable[None]:
        """Make everything of an execution durable."""
        ...

    def end(self, execution: Execution) -> None:
        """Keep an execution that has its final response."""
        ...


class Recorder:
    """An ``ExecutionRecorder`` over a backend; one for each execution.

    ``sample_rate`` is a number from 0.0 to 1.0; it is not checked here, because a runtime makes a
    recorder for each turn.

    If not ``at_once``, it does not write its log records itself: they are written together with
    those of other executions, by the next barrier, or in the next round of the event loop.
    """

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        backend: RecorderBackend,
        sample_rate: float = 1.0,
        *,
        at_once: bool = True,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._backend = backend
        self._sample_rate = sample_rate
        self._at_once = at_once
        self._execution: Execution | None = None
        self.is_sampled_out = False

    @property
    def last_event(self) -> str | None:
        """The type of the last event, or None."""
        execution = self._execution
        return None if execution is None else execution.last_event

    @property
    def start_entry(self) -> int:
        """The number of the last entry of its start in a write-ahead log."""
        assert self._execution is not None
        return self._execution.start_entry

    def start(
        self,
        envelope: object,
        side_effects: SideEffectClass = SideEffectClass.IRREVERSIBLE,
        re_execution_of: str | None = None,
        events: Sequence[tuple[EventType, object]] = (),
    ) -> str:
        if self._execution is not None or self.is_sampled_out:
            raise RecorderError("Cannot start twice; make a recorder for each execution")
        if not (re_execution_of is None or is_text(re_execution_of)):
            repeated = shown(re_execution_of, 100)
            raise RecorderError(f"Cannot repeat {repeated}; give the id as a text")
        frozen = FrozenEnvelope.of(envelope)
        execution_id = new_execution_id(self._ids, self._backend.has)
        if self._sample_rate < 1.0 and not is_sampled(execution_id, self._sample_rate):
            self.is_sampled_out = True
            return execution_id
        execution = Execution.new(
            self._clock, execution_id, frozen, side_effects, re_execution_of, events=events
        )
        self._backend.begin(execution, at_once=self._at_once)
        self._execution = execution
        return execution_id

    def record_event(self, event_type: EventType, payload: object) -> None:
        if (execution := self._started()) is None:
            return
        execution.check_next(event_type)
        try:
            self._backend.prepare()
            log_record = execution.next_event(event_type, payload)
            self._append(execution, log_record)
        except (OSError, StorageError):
            execution.lose_events()
            raise
        execution.add(log_record)

    def mark_not_replayable(self, reason: str) -> None:
        if self._execution is not None and (execution := self._started()) is not None:
            self._backend.prepare()
            log_record = execution.next_mark(reason)
            self._append(execution, log_record)
            execution.add_mark(log_record, reason)

    async def barrier(self) -> None:
        if self._execution is not None:
            await self._backend.barrier(self._execution)

    def complete(self, final_response: object) -> ExecutionRecord | None:
        if (execution := self._started()) is None:
            return None
        with _KEPT_IN_MEMORY:
            self._backend.prepare()
        log_record = execution.final_event(final_response)
        log_records = execution.log_records_with(log_record)
        with _KEPT_IN_MEMORY:
            self._append(execution, log_record)
        execution.add(log_record)
        self._backend.end(execution)
        return execution.record(log_records)

    def append_response(self, final_response: object) -> None:
        """Do the same as ``complete``, for a caller that does not need the record."""
        if (execution := self._started()) is not None:
            with _KEPT_IN_MEMORY:
                self._backend.prepare()
            log_record = execution.final_event(final_response)
            with _KEPT_IN_MEMORY:
                self._append(execution, log_record)
            execution.add(log_record)
            self._backend.end(execution)

    async def finalize(self, final_response: object) -> ExecutionRecord | None:
        if (execution := self._started()) is None:
            return None
        self._backend.prepare()
        log_record = execution.final_event(final_response)
        # If the parts of a long execution cannot be read, this raises before anything is recorded.
        log_records = execution.log_records_with(log_record)
        await self._end(execution, log_record)
        return execution.record(log_records)

    async def end(self, final_response: object) -> None:
        if (execution := self._started()) is not None:
            self._backend.prepare()
            await self._end(execution, execution.final_event(final_response))

    def _append(self, execution: Execution, log_record: LogRecord | StoredLogRecord) -> None:
        self._backend.append(execution, log_record, at_once=self._at_once)

    async def _end(self, execution: Execution, log_record: LogRecord | StoredLogRecord) -> None:
        # At once, because a refused response must not end the execution: the call is repeated.
        self._backend.append(execution, log_record, at_once=True)
        execution.add(log_record)
        self._backend.end(execution)
        await self._backend.barrier(execution)

    def _started(self) -> Execution | None:
        """Return the execution, which has not ended; None if it was sampled out."""
        if self._execution is None and not self.is_sampled_out:
            raise RecorderError("Cannot record before start")
        if self._execution is not None:
            self._execution.check_open()
        return self._execution


class InMemoryExecutionRecorder(Recorder):
    """A recorder in memory, for callers without a disk; a crash loses its execution.

    The execution is in ``store`` from its start, so that open executions can be found there.

    Raises ``ValueError`` for a ``sample_rate`` that is no number from 0.0 to 1.0.
    """

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        store: InMemoryExecutionStore | None = None,
        sample_rate: float = 1.0,
    ) -> None:
        backend = InMemoryExecutionStore(clock) if store is None else store
        super().__init__(clock, ids, backend, checked_rate(sample_rate))
