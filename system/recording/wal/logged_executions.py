"""The executions of a write-ahead log, computed from snapshots and entries."""

from __future__ import annotations

from collections.abc import Iterable

from system.ports import Clock
from system.recording.executions.execution import Execution, ExecutionView
from system.recording.executions.log_record import LogRecord
from system.recording.executions.record_builder import RecordBuilder
from system.recording.records.record import ExecutionRecord
from system.recording.records.structure import checked
from system.recording.wal.format import DIRECTORY
from system.recording.wal.log_record_index import LogRecordIndex
from system.recording.wal.series import Series


def place_of(execution_id: str) -> str:
    """Return the place of an execution of a log, for errors."""
    return f"{DIRECTORY} ({execution_id})"


def sound_record(execution: Execution | ExecutionView) -> ExecutionRecord:
    """Return the record of an execution of a log.

    Raises ``RecordCorruptedError`` if it lacks an event, or ``OSError``.
    """
    return checked(execution.record(), place_of(execution.execution_id))


class LoggedExecutions:
    """The executions of a log by id; each is made of its log records when it is first read.

    ``headless`` are ids whose start is missing or cannot be used, as far as they were read.
    ``may_lack_others`` is whether a damaged snapshot may have had more executions than were found.
    """

    def __init__(self, clock: Clock) -> None:
        self.headless: set[str] = set()
        self.may_lack_others = False
        self._clock = clock
        self._log_records = LogRecordIndex()
        self._read: dict[str, Execution | None] = {}

    def resume(self, execution_id: str, log_records: list[LogRecord]) -> None:
        """Continue with an execution of a snapshot, which has these log records."""
        self._log_records.resume(execution_id, log_records)

    def apply(self, log: Iterable[Series], after: int = 0) -> None:
        """Apply the entries whose sequence number is above ``after``."""
        for series in log:
            self._log_records.add(series, after)

    def get(self, execution_id: str) -> Execution | None:
        """Return an execution, or None if the log does not have its start."""
        if execution_id not in self._read:
            self._read[execution_id] = self._put_together(execution_id)
        return self._read[execution_id]

    def _put_together(self, execution_id: str) -> Execution | None:
        builder = RecordBuilder()
        try:
            for log_record in self._log_records.of(execution_id):
                # Pieces of a payload whose first piece is lost are not a log record.
                if (parsed := log_record.parsed()) is not None:
                    builder.take_parsed(log_record, parsed)
        except ValueError:
            self.headless.add(execution_id)
            return None
        return None if builder.start is None else Execution.resumed(self._clock, builder)

    def may_lack(self, execution_id: str) -> bool:
        """Return whether damage may have taken an execution that is not in the log."""
        return self.may_lack_others or execution_id in self.headless

    def add(self, execution: Execution) -> None:
        """Add an execution that recovery has found elsewhere."""
        self._read[execution.execution_id] = execution

    def all(self) -> dict[str, Execution]:
        """Return all executions by id, those that were added last."""
        found = {each: self.get(each) for each in [*self._log_records.ids(), *self._read]}
        return {each: execution for each, execution in found.items() if execution is not None}

    def corrupted(self) -> list[str]:
        """Return the ids of executions that lack an event or their start, sorted."""
        damaged = {key for key, each in self.all().items() if each.is_corrupted}
        return sorted(self.headless | damaged)
