"""Executions from the entries of a write-ahead log, on top of snapshots.

Applying an entry twice changes nothing: events are counted, so entries that a snapshot has
already are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from json import loads

from system.ports import Clock
from system.recording.event import EventType, ExecutionEvent
from system.recording.execution import Execution
from system.recording.frozen_json import FrozenJson
from system.recording.record import ExecutionRecord
from system.recording.record_members import header_from_dict
from system.recording.wal_entry import LogEntry
from system.recording.wal_format import EVENT_OF_ENTRY, EntryType
from system.storage.codec import canonical


class WalRedo:
    """``executions`` by id; ``headless`` are ids whose start is missing."""

    def __init__(self, clock: Clock) -> None:
        self.executions: dict[str, Execution] = {}
        self.headless: set[str] = set()
        self._clock = clock

    def resume(self, record: ExecutionRecord, *, is_damaged: bool) -> None:
        """Go on with the execution of a snapshot."""
        execution = Execution(self._clock, record.header, record.frozen_envelope)
        for event in record.events:
            execution.redo(event)
        if is_damaged:
            execution.corrupt()
        self.executions[record.execution_id] = execution

    def corrupted(self) -> list[str]:
        """Return the ids of executions that lack an event or their start, sorted."""
        damaged = {key for key, each in self.executions.items() if each.is_corrupted}
        return sorted(self.headless | damaged)

    def apply(self, entries: Iterable[LogEntry], after: int = 0) -> None:
        """Apply the entries whose sequence number is above ``after``."""
        for entry in entries:
            if entry.sequence > after:
                self._apply(entry)

    def _apply(self, entry: LogEntry) -> None:
        execution = self.executions.get(entry.execution_id)
        if execution is None:
            if entry.entry_type == EntryType.START:
                self.executions[entry.execution_id] = self._started(entry)
            else:
                self.headless.add(entry.execution_id)
        elif entry.entry_type == EntryType.NOT_REPLAYABLE:
            execution.mark_not_replayable(str(loads(entry.payload)))
        elif entry.entry_type in EVENT_OF_ENTRY:
            event_type = EVENT_OF_ENTRY[EntryType(entry.entry_type)]
            _redo(execution, event_type, entry)

    def _started(self, entry: LogEntry) -> Execution:
        members = loads(entry.payload)
        header = header_from_dict(members["header"])
        return Execution(self._clock, header, FrozenJson(canonical(members["envelope"])))


def _redo(execution: Execution, event_type: EventType, entry: LogEntry) -> None:
    number, next_number = entry.number, len(execution.events) + 1
    if execution.is_finished or number < next_number:
        return
    if entry.reason is not None:
        execution.mark_not_replayable(loads(entry.reason))
    if number > next_number:
        if execution.has_lost_events:
            # The lost events were never acknowledged: the final response takes their place.
            number = next_number
        else:
            execution.corrupt()
    execution.redo(ExecutionEvent(number, event_type, FrozenJson(entry.payload), entry.timestamp))


def start_payload(execution: Execution) -> bytes:
    """Return the payload of the entry that starts an execution."""
    return b'{"envelope":%s,"header":%s}' % (
        execution.envelope.encoded, canonical(execution.header.to_dict()),
    )  # fmt: skip
