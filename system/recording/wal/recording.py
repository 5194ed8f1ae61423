"""The recording of one root: its write-ahead log, and the executions that are only in the log.

Every execution is in the log from its start. When it has ended, its record waits for a
checkpoint, which writes it into a pack.
"""

from __future__ import annotations

from asyncio import Lock, get_running_loop
from collections.abc import Awaitable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from posixpath import join
from typing import Final, NamedTuple

from system.errors import StorageError
from system.ports import Host
from system.recording.executions.entry_type import EntryType
from system.recording.executions.execution import Execution, ExecutionView
from system.recording.executions.log_record import LogRecord, StoredLogRecord
from system.recording.executions.log_record_list import MOST_BYTES
from system.recording.executions.spool import Spool
from system.recording.records.errors import BarrierFailed
from system.recording.stores.file_store import FileExecutionStore
from system.recording.wal.checkpoint import CHECKPOINT, Checkpoint, write_checkpoint
from system.recording.wal.log import RECORDS, SNAPSHOTS, WriteAheadLog

_FINAL_RESPONSE: Final = int(EntryType.FINAL_RESPONSE)


class FoundPacks(NamedTuple):
    """The packs that a recovery has found.

    ``snapshots`` are the numbers of all packs of snapshots, and ``pack`` is the highest number of a
    pack that was in use. A wrong file of the checkpoint is replaced by the next one, also if it
    covers nothing: either it names packs that are missing, or it is damaged, and the new log begins
    with low numbers, and would be ignored if the old ones could be read again.
    """

    snapshots: Collection[int] = ()
    pack: int = 0
    is_checkpoint_wrong: bool = False


NO_PACKS: Final = FoundPacks()


class WalRecording:
    """The backend of recorders over one write-ahead log.

    ``running`` are the executions under way, ``waiting`` the finished ones whose record no
    checkpoint has written yet. ``files`` is the store of the others, and ``being_written`` are the
    ids of records that a checkpoint is writing now. At most ``most_bytes`` of the log records of an
    execution are kept in memory. ``found`` are the packs that a recovery has found.
    """

    def __init__(
        self,
        host: Host,
        log: WriteAheadLog,
        root: str = "",
        most_bytes: int = MOST_BYTES,
        found: FoundPacks = NO_PACKS,
    ) -> None:
        self.log = log
        self.files = FileExecutionStore(host, join(root, RECORDS), join(root, SNAPSHOTS))
        self.running: dict[str, Execution] = {}
        self.waiting: dict[str, ExecutionView] = {}
        self.being_written: frozenset[str] = frozenset()
        self._snapshots = FileExecutionStore(host, join(root, SNAPSHOTS))
        self._snapshot_numbers = {*found.snapshots}
        self._checkpoint_path = join(root, CHECKPOINT)
        self._host = host
        # Its directory exists since the first append.
        self._make_spool = partial(Spool, host.files, host.ids, self._snapshots.base_path)
        self._most_bytes = most_bytes
        self._checkpointing = Lock()
        self._is_write_due = False
        # Finished executions whose last entries the log may have lost.
        self._unlogged: set[str] = set()
        # Those whose record has a file of its own, which takes precedence over a pack.
        self._replaced: set[str] = set()
        # The number of the last checkpoint; the packs of records are counted before the first one.
        self._pack = found.pack
        self._are_packs_counted = False
        self._newest_records = 0
        self._is_checkpoint_wrong = found.is_checkpoint_wrong
        # The number of finished segments when a checkpoint was refused.
        self._refused_segments = 0
        # The log refers to the executions only: a recording that a crash abandons is freed at once.
        log.on_doubt = partial(_lose_entries, self.running, self.waiting, self._unlogged)

    def resume(self, executions: Mapping[str, Execution]) -> None:
        """Let the executions of a recovery wait for a checkpoint."""
        for execution_id, execution in executions.items():
            self.waiting[execution_id] = execution.view()
        self._unlogged.update(executions)
        self._replaced = {each for each in executions if self.files.has_own_file(each)}

    # -- the backend of recorders ----------------------------------------------------------

    def has(self, execution_id: str) -> bool:
        """Return whether an execution in memory has the id.

        Those on the disk are not searched: an id has 64 random bits.
        """
        return execution_id in self.running or execution_id in self.waiting

    def begin(self, execution: Execution, *, at_once: bool) -> None:
        execution.start_entry = self.log.append(execution.log_records.recent)
        self._appended(execution, execution.start_entry, at_once=at_once)
        execution.keep_long_parts_in(self._make_spool, self._most_bytes)
        self.running[execution.execution_id] = execution

    def prepare(self) -> None:
        # The change of a segment may lose events, and no others may follow lost ones.
        self.log.prepare()

    def append(
        self, execution: Execution, log_record: LogRecord | StoredLogRecord, *, at_once: bool
    ) -> None:
        is_final = log_record.entry_type == _FINAL_RESPONSE
        if is_final:
            # Until the response is in the log, only a checkpoint can keep it.
            self._unlogged.add(execution.execution_id)
            if not at_once and execution.start_entry in self.log.doubtful:
                return
        if isinstance(log_record, StoredLogRecord):
            last = self.log.append_pieces((log_record,))
        else:
            last = self.log.append((log_record,))
        self._appended(execution, last, at_once=at_once)
        if is_final:
            self._unlogged.discard(execution.execution_id)

    def _appended(self, execution: Execution, last: int, *, at_once: bool) -> None:
        """Write the log records of an execution up to the entry ``last``, now or in a moment."""
        if at_once:
            self.log.write()
        elif not self._is_write_due:
            self._is_write_due = True
            get_running_loop().call_soon(self._write)
        execution.last_entry = last

    def _write(self) -> None:
        """Write what was appended; executions whose entries are refused have lost them."""
        self._is_write_due = False
        with suppress(OSError, StorageError):
            self.log.write()

    def barrier(self, execution: Execution) -> Awaitable[None]:
        if execution.is_finished and execution.start_entry in self.log.doubtful:
            return self._write_record(execution.execution_id)
        return self.log.barrier(execution.last_entry)

    async def _write_record(self, execution_id: str) -> None:
        """Write the record of a finished execution, of which the log may have lost the start.

        Raises ``BarrierFailed`` if the disk refuses the checkpoint.
        """
        try:
            async with self._checkpointing:
                if execution_id in self.waiting:
                    await self._checkpoint_alone()
        except (OSError, StorageError) as error:
            reason = f"the response of {execution_id} may be lost ({error})"
            raise BarrierFailed(self.log.directory, reason) from error

    def end(self, execution: Execution) -> None:
        execution_id = execution.execution_id
        del self.running[execution_id]
        self.waiting[execution_id] = execution.view()

    def forget(self, execution_id: str) -> None:
        """Remove an execution from those that wait: a file has its record."""
        if (view := self.waiting.pop(execution_id, None)) is not None:
            view.close()
            self._unlogged.discard(execution_id)

    # -- the checkpoint ------------------------------------------------------------------

    @property
    def is_checkpoint_due(self) -> bool:
        """Whether a segment can be removed, and was not when a checkpoint was refused."""
        log = self.log
        return (
            len(log.segments) > self._refused_segments
            # A checkpoint that is under way removes segments in another thread.
            and not self._checkpointing.locked()
            and log.has_superfluous_segment
        )

    async def checkpoint(self) -> None:
        """Write waiting records and snapshots of running executions; remove old segments.

        Returns at once while another checkpoint is under way. Raises ``StorageError`` or
        ``OSError``; then everything waits for the next one.
        """
        if self._checkpointing.locked():
            return
        async with self._checkpointing:
            await self._checkpoint_alone()

    async def _checkpoint_alone(self) -> None:
        try:
            await self._checkpoint()
        except (OSError, StorageError):
            self._refused_segments = len(self.log.segments)
            raise
        finally:
            self.being_written = frozenset()
        self._refused_segments = 0

    async def _checkpoint(self) -> None:
        log = self.log
        # An execution that ends from here on has entries behind ``sequence``.
        sequence, done, running = log.last, dict(self.waiting), list(self.running.values())
        try:
            await log.barrier(sequence)
        except StorageError:
            # The packs have the log records that the log may have lost. The checkpoint covers all
            # entries in doubt: after a crash those that survive would be read as open executions.
            # It covers no entry of the segment after them, which no barrier has made durable.
            sequence = log.doubtful.last
            done, running = dict(self.waiting), list(self.running.values())
        # During the barrier, a record may have got a file of its own.
        done = {each: view for each, view in done.items() if self.waiting.get(each) is view}
        records = list(done.values())
        snapshots = [execution.view() for execution in running if self.has(execution.execution_id)]
        self.being_written = frozenset(each.execution_id for each in (*records, *snapshots))
        is_stale = log.has_segments or self._snapshot_numbers or self._is_checkpoint_wrong
        if records or snapshots or is_stale:
            await self._host.workers.run(lambda: self._write_packs(records, snapshots))
            await self._settle(sequence)
        for execution_id in done:
            self.forget(execution_id)

    def _write_packs(
        self, records: Sequence[ExecutionView], snapshots: Sequence[ExecutionView]
    ) -> None:
        """Write a pack of records, and one of snapshots, durably, with a new number."""
        if not self._are_packs_counted:
            # After the packs of the checkpoint, an interrupted one may have written others.
            numbers = self.files.packs.numbers()
            self._newest_records = next(filter(self.files.packs.has, reversed(numbers)), 0)
            self._pack = max([self._pack, *numbers])
        self._pack += 1
        for store in (self.files, self._snapshots):
            store.make_directory()
        # A checkpoint must not survive a power cut without the directories of its packs.
        self.log.sync_root()
        for view in [each for each in records if each.execution_id in self._replaced]:
            self.files.write(view.record())
        if packed := [each for each in records if each.execution_id not in self._replaced]:
            self.files.write_pack(self._pack, packed)
            self._newest_records = self._pack
        # The recovery may have found names that an earlier process has left without a barrier.
        if packed or not self._are_packs_counted:
            self.files.sync()
        self._are_packs_counted = True
        if snapshots:
            self._snapshot_numbers.add(self._pack)
            self._snapshots.write_pack(self._pack, snapshots)
            self._snapshots.sync()

    async def _settle(self, sequence: int) -> None:
        """Write the file of the checkpoint; remove the segments and snapshots before it."""
        host, path, pack = self._host, self._checkpoint_path, self._pack
        segment = self.log.finish_through(sequence)
        snapshots = pack if pack in self._snapshot_numbers else 0
        checkpoint = Checkpoint(
            sequence, segment, pack, records=self._newest_records, snapshots=snapshots
        )

        def settle() -> None:
            write_checkpoint(host.files, host.ids, path, checkpoint)
            self.log.remove_before(segment)
            for number in [each for each in self._snapshot_numbers if each != pack]:
                self._snapshots.remove_pack(number)
                self._snapshot_numbers.discard(number)

        await host.workers.run(settle)
        self._is_checkpoint_wrong = False

    async def settle_entries(self) -> bool:
        """Make all entries durable; return whether the log or a record has every execution.

        Raises ``StorageError`` or ``OSError``.
        """
        self._write()
        if self._unlogged:
            await self.checkpoint()
        if self.log.last not in self.log.doubtful:
            await self.log.barrier(self.log.last)
        return not self._unlogged

    async def close(self) -> None:
        """Write a checkpoint and close the log; raises as ``checkpoint``, with the log closed.

        Waits for a checkpoint that is under way, which reads the files that are closed here.
        """
        async with self._checkpointing:
            try:
                # Without a segment, only a snapshot says that an execution has lost its last event.
                lost = any(each.has_lost_events for each in self.running.values())
                if self.waiting or lost or self.log.has_segments:
                    await self._checkpoint_alone()
            finally:
                self.log.close()
                for execution in self.running.values():
                    execution.log_records.close()
                for view in self.waiting.values():
                    view.close()


def _lose_entries(
    running: Mapping[str, Execution],
    waiting: Mapping[str, ExecutionView],
    unlogged: set[str],
    durable: int,
) -> None:
    """Let executions lose their entries after ``durable``; finished ones wait in memory."""
    for execution in running.values():
        if execution.last_entry > durable:
            execution.lose_events()
    for execution_id, view in waiting.items():
        if view.last_entry > durable:
            unlogged.add(execution_id)
