"""The recording of one root: its write-ahead log, and the executions that are in it only.

Every execution is in the log from its start. When it has ended, its record waits for a
checkpoint, which writes it into a file of its own.
"""

from __future__ import annotations

from asyncio import gather
from contextlib import suppress
from functools import partial
from posixpath import join
from typing import Final

from system.errors import StorageError
from system.ports import Host
from system.recording.checkpoint import CHECKPOINT, write_checkpoint
from system.recording.errors import BarrierFailed
from system.recording.event import EventType, ExecutionEvent
from system.recording.execution import Execution
from system.recording.file_store import FileExecutionStore
from system.recording.header import Reason
from system.recording.record import ExecutionRecord
from system.recording.wal_format import ENTRY_OF_EVENT, EntryType
from system.recording.wal_log import RECORDS, SNAPSHOTS, WriteAheadLog
from system.recording.wal_redo import start_payload
from system.storage.codec import canonical

WAITING_RECORDS: Final = 256
"""So many records wait for a checkpoint."""

RECORDS_A_CALL: Final = 16
"""Records that one worker writes in a row; several workers share them."""


class WalRecording:
    """The backend of recorders over one write-ahead log.

    ``running`` are the executions under way, ``waiting`` the records that no checkpoint has
    written yet, ``files`` the store of the others; ``being_written`` are the ids of records
    that a checkpoint is writing now.
    """

    def __init__(self, host: Host, log: WriteAheadLog, root: str = "") -> None:
        self.log = log
        self.files = FileExecutionStore(host, join(root, RECORDS), join(root, SNAPSHOTS))
        self.running: dict[str, Execution] = {}
        self.waiting: dict[str, ExecutionRecord] = {}
        self.being_written: frozenset[str] = frozenset()
        self._snapshots = FileExecutionStore(host, join(root, SNAPSHOTS))
        self._snapshot_ids: set[str] = set()
        self._checkpoint_path = join(root, CHECKPOINT)
        self._host = host
        self._is_checkpointing = False
        # After a refused checkpoint, the number of waiting records before the next one.
        self._patience = WAITING_RECORDS
        log.on_doubt = self._lose_entries_in_doubt

    def resume(self, records: dict[str, ExecutionRecord], snapshot_ids: set[str]) -> None:
        """Let the records of a recovery, and its old snapshots, wait for a checkpoint."""
        self.waiting.update(records)
        self._snapshot_ids |= snapshot_ids

    # -- the backend of recorders ----------------------------------------------------------

    def has(self, execution_id: str) -> bool:
        return (
            execution_id in self.running
            or execution_id in self.waiting
            or self.files.has(execution_id)
        )

    def begin(self, execution: Execution) -> None:
        header, payload = execution.header, start_payload(execution)
        execution.last_entry = self.log.append(
            EntryType.START, header.execution_id, 0, payload, header.created_utc_iso
        )
        self.running[header.execution_id] = execution

    def append(self, execution: Execution, event: ExecutionEvent) -> None:
        reason = execution.header.replayable_reason
        is_marked = event.type == EventType.FINAL_RESPONSE and reason != Reason.EXECUTION_INCOMPLETE
        execution.last_entry = self.log.append(
            ENTRY_OF_EVENT[EventType(event.type)],
            execution.execution_id,
            event.seq,
            event.frozen_payload.encoded,
            event.timestamp or execution.now(),
            canonical(str(reason)) if is_marked else None,
        )

    def mark(self, execution: Execution, reason: str) -> None:
        number, payload = len(execution.events), canonical(str(reason))
        execution.last_entry = self.log.append(
            EntryType.NOT_REPLAYABLE, execution.execution_id, number, payload, execution.now()
        )

    async def barrier(self, execution: Execution) -> None:
        await self.log.barrier(execution.last_entry)

    def end(self, execution: Execution) -> ExecutionRecord:
        record = execution.record()
        del self.running[record.execution_id]
        self.waiting[record.execution_id] = record
        return record

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
        sequence = log.last
        # After a failed barrier the records hold what the log may have lost.
        with suppress(BarrierFailed):
            await log.barrier(sequence)
        sequence = min(sequence, log.durable)
        records = list(self.waiting.values())
        snapshots = [execution.record() for execution in self.running.values()]
        self.being_written = frozenset(record.execution_id for record in records)
        for store in (self.files, self._snapshots):
            await workers.run(store.make_directory)
        await self._write(self.files, records)
        await self._write(self._snapshots, snapshots)
        self._snapshot_ids |= {record.execution_id for record in snapshots}
        files, ids, path = self._host.files, self._host.ids, self._checkpoint_path
        segment = log.finish_through(sequence)
        await workers.run(lambda: write_checkpoint(files, ids, path, sequence, segment))
        log.remove_before(segment)
        for record in records:
            if self.waiting.get(record.execution_id) is record:
                del self.waiting[record.execution_id]
        for execution_id in self._snapshot_ids - self.running.keys() - self.waiting.keys():
            self._snapshots.remove(execution_id)
            self._snapshot_ids.discard(execution_id)

    async def _write(self, store: FileExecutionStore, records: list[ExecutionRecord]) -> None:
        """Write records durably, several at a time."""
        if not records:
            return
        workers = self._host.workers
        starts = range(0, len(records), RECORDS_A_CALL)
        groups = [records[start : start + RECORDS_A_CALL] for start in starts]
        writes = [workers.run(partial(store.write, group)) for group in groups]
        # All of them end before an error of one is raised.
        for result in await gather(*writes, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        await workers.run(store.sync)

    async def close(self) -> None:
        """Write a checkpoint and close the log; raises as ``checkpoint``, with the log closed."""
        try:
            if self.waiting or self.log.has_segments:
                await self.checkpoint()
        finally:
            self.log.close()
