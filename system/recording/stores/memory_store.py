"""A store in memory, which is lost in a crash."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from system.ports import Clock
from system.recording.executions.execution import Execution
from system.recording.executions.log_record import LogRecord, StoredLogRecord
from system.recording.records.errors import RecordNotFoundError
from system.recording.records.execution_id import is_execution_id
from system.recording.records.invalidation import (
    check_not_running,
    invalidated,
    still_invalidated,
)
from system.recording.records.record import ExecutionRecord
from system.recording.records.structure import checked, to_save

PLACE: Final = "memory"


class InMemoryExecutionStore:
    """An ``ExecutionStore``, and the backend of recorders that keep executions in it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._records: dict[str, ExecutionRecord] = {}
        self._running: dict[str, Execution] = {}

    # -- the store -----------------------------------------------------------------------

    def save(self, record: ExecutionRecord) -> str:
        check_not_running(record.execution_id, is_running=self.is_running(record.execution_id))
        stored = self._records.get(record.execution_id)
        self._records[record.execution_id] = still_invalidated(to_save(record, PLACE), stored)
        return PLACE

    def load(self, execution_id: str) -> ExecutionRecord:
        if self.is_running(execution_id):
            return self._running[execution_id].record()
        record = self._finished(execution_id)
        if record is None:
            raise RecordNotFoundError(PLACE, execution_id)
        return checked(record, PLACE)

    def list_all(self) -> Iterator[str]:
        return iter(sorted({*self._records, *self._running}))

    def find_by_hash(self, envelope_hash: str) -> list[str]:
        found = [r.execution_id for r in self._records.values() if r.envelope_hash == envelope_hash]
        found += [
            r.execution_id for r in self._running.values() if r.envelope_hash == envelope_hash
        ]
        return sorted(found)

    def is_running(self, execution_id: str) -> bool:
        return is_execution_id(execution_id) and execution_id in self._running

    def _finished(self, execution_id: str) -> ExecutionRecord | None:
        return self._records.get(execution_id) if is_execution_id(execution_id) else None

    def hash_of(self, execution_id: str) -> str | None:
        record = self._finished(execution_id)
        return None if record is None else record.header.record_hash

    def invalidate(self, execution_id: str, reason: str, by: str) -> ExecutionRecord:
        check_not_running(execution_id, is_running=self.is_running(execution_id))
        record = invalidated(self.load(execution_id), reason, by, self._clock)
        self.save(record)
        return record

    # -- the backend of recorders ----------------------------------------------------------

    def has(self, execution_id: str) -> bool:
        return execution_id in self._records or execution_id in self._running

    def begin(self, execution: Execution, *, at_once: bool) -> None:  # noqa: ARG002 - nothing is written
        self._running[execution.execution_id] = execution

    def prepare(self) -> None:
        """Do nothing: memory is always ready."""

    def append(
        self, execution: Execution, log_record: LogRecord | StoredLogRecord, *, at_once: bool
    ) -> None:
        """Write nothing: the execution itself is in the store."""

    async def barrier(self, execution: Execution) -> None:
        """Return at once: memory has no barrier."""

    def end(self, execution: Execution) -> None:
        del self._running[execution.execution_id]
        self._records[execution.execution_id] = execution.record()
