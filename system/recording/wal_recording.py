"""The recording of one root: its write-ahead log, and the executions that are in it only.

Every execution is in the log from its start. When it has ended, its record waits for a
checkpoint, which writes it into a file of its own.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from posixpath import join
from typing import Final

from system.errors import StorageError
from system.ports import Host
from system.recording.checkpoint import CHECKPOINT, write_checkpoint
from system.recording.errors import BarrierFailed, EventLost
from system.recording.event import EventType, ExecutionEvent
from system.recording.event_list import MOST_BYTES, StoredEvent, StoredJson
from system.recording.execution import Execution
from system.recording.file_store import FileExecutionStore
from system.recording.header import Reason
from system.recording.record_writer import RecordView
from system.recording.spool import Spool
from system.recording.wal_entry import NewEntry
from system.recording.wal_format import ENTRY_OF_EVENT, EntryType
from system.recording.wal_log import RECORDS, SNAPSHOTS, WriteAheadLog
from system.recording.wal_redo import start_payload
from system.storage.codec import canonical

WAITING_RECORDS: Final = 256
"""So many records wait for a checkpoint."""

GROUPS: Final = 4
"""Workers that write records side by side; the others are left to the barriers of turns."""


class WalRecording:
    """The backend of recorders over one write-ahead log.

    ``running`` are the executions under way, ``waiting`` those whose record no checkpoint has
    written yet; they do not change any more. ``files`` is the store of the others, and
    ``being_written`` are the ids of records that a checkpoint is writing now. Of an execution
    ``most_bytes`` of payloads are kept in memory.
    """

    def __init__(
        self, host: Host, log: WriteAheadLog, root: str = "", most_bytes: int = MOST_BYTES
    ) -> None:
        self.log = log
        self.files = FileExecutionStore(host, join(root, RECORDS), join(root, SNAPSHOTS))
        self.running: dict[str, Execution] = {}
        self.waiting: dict[str, Execution] = {}
        self.being_written: frozenset[str] = frozenset()
        self._snapshots = FileExecutionStore(host, join(root, SNAPSHOTS))
        # The last entry of each execution with a snapshot, as of the last checkpoint.
        self._snapshot_ends: dict[str, int] = {}
        self._checkpoint_path = join(root, CHECKPOINT)
        self._host = host
        self._most_bytes = most_bytes
        self._is_checkpointing = False
        self._is_closing = False
        # Executions that recovery has completed: their ends are in no entry.
        self._unlogged: set[str] = set()
        # Sequence and segment of the checkpoint.
        self._settled, self._segment = log.last, 0
        # After a refused checkpoint, the number of waiting records before the next one.
        self._patience = WAITING_RECORDS
        log.on_doubt = self._lose_entries_in_doubt

    def resume(self, executions: dict[str, Execution], snapshot_ids: set[str]) -> None:
        """Let the executions of a recovery, and its old snapshots, wait for a checkpoint."""
        self.waiting.update(executions)
        self._unlogged |= executions.keys()
        self._snapshot_ends.update(dict.fromkeys(snapshot_ids, self.log.last))

    # -- the backend of recorders ----------------------------------------------------------

    def has(self, execution_id: str) -> bool:
        return (
            execution_id in self.running
            or execution_id in self.waiting
            or self.files.has(execution_id)
        )

    def begin(self, execution: Execution) -> None:
        header, payload = execution.header, start_payload(execution)
        execution_id, now = header.execution_id, header.created_utc_iso
        start = NewEntry(EntryType.START, execution_id, 0, payload, now)
        events = [_entry_of(execution_id, event) for event in execution.events.now().recent]
        execution.first_entry = self.log.last + 1
        execution.last_entry = self.log.append([start, *events])
        # Its directory is there since the first append.
        execution.keep_long_parts_in(self._make_spool, self._most_bytes)
        self.running[execution_id] = execution

    def _make_spool(self) -> Spool:
        return Spool(self._host.files, self._host.ids, self._snapshots.base_path)

    def append(self, execution: Execution, event: ExecutionEvent | StoredEvent) -> None:
        # The change of a segment may lose earlier events, behind which none may follow.
        self.log.prepare()
        is_final = event.type == EventType.FINAL_RESPONSE
        if execution.has_lost_events and not is_final:
            raise EventLost(execution.execution_id, "a barrier failed before this event")
        entry, reason = _entry_of(execution.execution_id, event), execution.header.replayable_reason
        if is_final and reason != Reason.EXECUTION_INCOMPLETE:
            entry = entry._replace(reason=canonical(str(reason)))
        execution.last_entry = self.log.append([entry])

    def mark(self, execution: Execution, reason: str) -> None:
        execution.last_entry = self.log.append([_mark_of(execution, reason)])

    async def barrier(self, execution: Execution) -> None:
        await self.log.barrier(execution.last_entry)

    def end(self, execution: Execution) -> None:
        del self.running[execution.execution_id]
        self.waiting[execution.execution_id] = execution

    def forget(self, execution_id: str) -> None:
        """Stop to wait for the record of an execution: a file has it."""
        if (execution := self.waiting.pop(execution_id, None)) is not None:
            execution.events.close()

    def _lose_entries_in_doubt(self) -> None:
        for execution in self.running.values():
            if execution.last_entry > self.log.durable:
                execution.lose_events()

    # -- the checkpoint ------------------------------------------------------------------

    @property
    def is_checkpoint_due(self) -> bool:
        """Whether enough records wait, or a segment can be removed."""
        if self._is_checkpointing:
            return False
        return len(self.waiting) >= self._patience or (
            self._patience == WAITING_RECORDS and self.log.has_superfluous_segment
        )

    async def checkpoint(self) -> None:
        """Write waiting records and snapshots of running executions; remove old segments.

        Returns at once while another checkpoint is under way. Raises ``StorageError`` or
        ``OSError``; then everything waits for the next one.
        """
        if self._is_checkpointing:
            return
        self._is_checkpointing = True
        try:
            await self._checkpoint()
        except (OSError, StorageError):
            self._patience = len(self.waiting) + WAITING_RECORDS
            raise
        finally:
            self._is_checkpointing = False
            self.being_written = frozenset()
        self._patience = WAITING_RECORDS

    async def _checkpoint(self) -> None:
        log, workers = self.log, self._host.workers
        # Without a segment to remove, executions under way stay in the log alone.
        frees_log = self._is_closing or log.has_superfluous_segment
        sequence = log.last if frees_log else self._last_before_running()
        # An execution that ends from here on has entries behind ``sequence``.
        done, running = list(self.waiting.values()), list(self.running.values())
        # After a failed barrier the records hold what the log may have lost.
        with suppress(BarrierFailed):
            await log.barrier(log.last)
        sequence = max(self._settled, min(sequence, log.durable))
        self.being_written = frozenset(execution.execution_id for execution in done)
        for store in (self.files, self._snapshots):
            await workers.run(store.make_directory)
        await self._write(self.files, [execution.view() for execution in done])
        # A loss of events is not in the log.
        snapshots = [each.view() for each in running if frees_log or each.has_lost_events]
        await self._write(self._snapshots, snapshots)
        self._snapshot_ends.update((record.execution_id, sequence) for record in snapshots)
        await self._settle(sequence)
        for execution in done:
            execution_id = execution.execution_id
            if self.waiting.get(execution_id) is execution:
                self.forget(execution_id)
                self._unlogged.discard(execution_id)
            if execution_id in self._snapshot_ends:
                self._snapshot_ends[execution_id] = execution.last_entry
        self._remove_snapshots(sequence)

    def _remove_snapshots(self, sequence: int) -> None:
        """Remove those of executions whose record is written and whose entries are settled.

        Without its snapshot an entry behind the checkpoint would seem to lack its start.
        """
        for execution_id, last_entry in list(self._snapshot_ends.items()):
            is_written = execution_id not in self.running and execution_id not in self.waiting
            if is_written and last_entry <= sequence:
                self._snapshots.remove(execution_id)
                del self._snapshot_ends[execution_id]

    async def settle_entries(self) -> bool:
        """Make all entries durable; return whether a log or a record then has every execution.

        Raises ``StorageError`` or ``OSError``.
        """
        if self._unlogged:
            await self.checkpoint()
        await self.log.barrier(self.log.last)
        return not self._unlogged

    def _last_before_running(self) -> int:
        """Return the number of the last entry before those of all executions under way."""
        firsts = [execution.first_entry for execution in self.running.values()]
        return min([self.log.last + 1, *firsts]) - 1

    async def _settle(self, sequence: int) -> None:
        """Write the file of the checkpoint, unless it says so already; remove old segments."""
        segment = self.log.finish_through(sequence)
        if (sequence, segment) != (self._settled, self._segment):
            files, ids, path = self._host.files, self._host.ids, self._checkpoint_path
            write = partial(write_checkpoint, files, ids, path, sequence, segment)
            await self._host.workers.run(write)
            self._settled, self._segment = sequence, segment
        self.log.remove_before(segment)

    async def _write(self, store: FileExecutionStore, records: Sequence[RecordView]) -> None:
        """Write records durably, several at a time."""
        if not records:
            return
        workers = self._host.workers
        groups = [records[start::GROUPS] for start in range(min(GROUPS, len(records)))]
        writes = [workers.run(partial(store.write, group)) for group in groups]
        # All of them end before an error of one is raised.
        for result in await gather(*writes, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        await workers.run(store.sync)

    async def close(self) -> None:
        """Write a checkpoint and close the log; raises as ``checkpoint``, with the log closed."""
        self._is_closing = True
        try:
            if self.waiting or self.log.has_segments:
                await self.checkpoint()
        finally:
            self.log.close()
            for execution in (*self.running.values(), *self.waiting.values()):
                execution.events.close()


def _entry_of(execution_id: str, event: ExecutionEvent | StoredEvent) -> NewEntry:
    assert event.timestamp is not None
    entry_type = ENTRY_OF_EVENT[EventType(event.type)]
    frozen = event.frozen_payload
    payload = frozen if isinstance(frozen, StoredJson) else frozen.encoded
    return NewEntry(entry_type, execution_id, event.seq, payload, event.timestamp)


def _mark_of(execution: Execution, reason: str) -> NewEntry:
    number, payload = len(execution.events), canonical(str(reason))
    now = execution.now()
    return NewEntry(EntryType.NOT_REPLAYABLE, execution.execution_id, number, payload, now)
