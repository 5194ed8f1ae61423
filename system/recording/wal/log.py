"""The write-ahead log of one boot: numbered entries, and barriers that callers share.

``append`` numbers log records and gathers them; one call of the disk writes all of them, in
``write`` or in ``barrier``. After ``write`` an entry survives a kill, after ``barrier`` also a
power cut. After a failed write or barrier the log continues: no more entries are written to the
segment, the next append begins a new one, and numbers are never used again (docs/recording.md, The
write-ahead log).
"""

from __future__ import annotations

from asyncio import CancelledError, Future, Task, create_task, get_running_loop
from collections.abc import Callable, Sequence
from contextlib import suppress
from posixpath import join
from typing import Final

from system.errors import LogStopped, StorageError, raise_if_full
from system.ports import FileKind, Host
from system.recording.executions.log_record import LogRecord, StoredLogRecord
from system.recording.executions.spool import PIECE_BYTES
from system.recording.records.errors import BarrierFailed
from system.recording.wal.doubtful_entries import DoubtfulEntries
from system.recording.wal.format import (
    CURRENT,
    DIRECTORY,
    NEXT_CURRENT,
    number_of,
    segment_name,
)
from system.recording.wal.segment import WalSegment

SEGMENT_BYTES: Final = 4 << 20
"""The bytes at which a segment is full. Its finished records are in memory until then."""

_MOST_GATHERED: Final = 1 << 20
"""The bytes of gathered log records at which they are written at once."""

RECORDS: Final = "records"
SNAPSHOTS: Final = "snapshots"


class WriteAheadLog:
    """The log below ``root``, which continues after the entry ``last``.

    ``durable`` is the number of the last entry known to be durable. ``segments`` are finished
    segments, each with its path and its last entry number, the oldest first; ``number`` is the
    number of the newest segment. ``on_doubt`` is called with the number ``durable`` after a failed
    write or barrier, when the entries after it may be lost. ``doubtful`` are all that may be lost.
    """

    def __init__(
        self,
        host: Host,
        root: str = "",
        last: int = 0,
        number: int = 0,
        segments: tuple[tuple[str, int], ...] = (),
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.last = last
        self.durable = last
        self.segments = list(segments)
        self.on_doubt: Callable[[int], None] = _ignore
        self._host = host
        self._root = root
        self._number = number
        self._segment_bytes = segment_bytes
        self._segment: WalSegment | None = None
        # Log records that have a number, and are not in the segment yet.
        self._gathered: list[LogRecord] = []
        self._gathered_bytes = 0
        self.doubtful = DoubtfulEntries()
        # The callers of ``barrier``, with the entry that each needs, and the task that syncs.
        self._waiting: list[tuple[int, Future[None]]] = []
        self._syncer: Task[None] | None = None
        # The segment that a worker syncs now; it is closed after that.
        self._syncing: WalSegment | None = None
        self._is_root_synced = True

    @property
    def directory(self) -> str:
        """The directory of the segments."""
        return join(self._root, DIRECTORY)

    def append(self, log_records: Sequence[LogRecord]) -> int:
        """Gather log records of executions for one write; return the number of their last entry.

        Many bytes are written at once. Raises as ``write``, also if a segment cannot be begun.
        """
        if not self._gathered:
            self.prepare()  # else their segment is open
        size_bytes = 0
        for log_record in log_records:
            size_bytes += len(log_record.encoded)
        if size_bytes > PIECE_BYTES:
            return self.append_pieces(log_records)
        self._gathered += log_records
        self._gathered_bytes += size_bytes
        self.last += len(log_records)
        if self._gathered_bytes >= _MOST_GATHERED:
            self.write()
        return self.last

    def append_pieces(self, log_records: Sequence[LogRecord | StoredLogRecord]) -> int:
        """Write log records of any length at once; returns and raises as ``append``."""
        # If parts of them cannot be read, the log records of others must not be refused.
        self.write()
        self.prepare()
        self.last += len(log_records)
        self._write(lambda segment: segment.append_pieces(log_records, self.durable))
        return self.last

    def write(self) -> None:
        """Write the gathered log records, all or none of them, with one call of the disk.

        Raises ``StorageFull`` or ``OSError`` if they are lost, or ``BarrierFailed`` if that is not
        certain. Then ``on_doubt`` has been called, and their numbers are used up.
        """
        if self._gathered:
            self._write(lambda segment: segment.append(self._gathered, self.durable))
            self._gathered, self._gathered_bytes = [], 0

    def _write(self, append: Callable[[WalSegment], None]) -> None:
        segment = self._segment
        assert segment is not None, "a log record gets its number when its segment is open"
        try:
            append(segment)
        except LogStopped as stopped:
            self._lose_entries(segment, stopped)
            raise BarrierFailed(segment.path, f"its barrier failed ({stopped.reason})") from stopped
        except OSError as error:
            self._finish_durably(segment, refusal=error)
            raise_if_full(segment.path, error)
            raise
        self.last = segment.last

    def barrier(self, sequence: int) -> Future[None]:
        """Return a future that is done when the entries up to ``sequence`` are durable.

        A sync begins as soon as the other callbacks of this round of the event loop have run; all
        entries that were appended by then share it. The future raises ``StorageFull`` if
        ``sequence`` was not written because the disk is full, or ``BarrierFailed`` if it may be
        lost.
        """
        if sequence <= self.durable or sequence <= self.doubtful.last:
            waiter: Future[None] = get_running_loop().create_future()
            self._end([(sequence, waiter)])
            return waiter
        if self._syncer is None:
            self._syncer = create_task(self._sync_all())
            self._syncer.add_done_callback(self._ended)
        # Each caller would pay for another look at which loop is running.
        waiter = self._syncer.get_loop().create_future()
        self._waiting.append((sequence, waiter))
        return waiter

    def _end(self, waiting: Sequence[tuple[int, Future[None]]]) -> None:
        """End waits for entries that are durable or may be lost."""
        for sequence, waiter in waiting:
            if waiter.done():
                continue  # its caller was cancelled
            try:
                if sequence <= self.doubtful.last:
                    self.doubtful.check(sequence, self.directory)
            except StorageError as failure:
                waiter.set_exception(failure)
            else:
                assert sequence <= self.durable
                waiter.set_result(None)

    async def _sync_all(self) -> None:
        """Sync until no caller of ``barrier`` waits; a caller that is cancelled stops no other."""
        try:
            while self._waiting:
                # Those that come later share the next sync.
                number = len(self._waiting)
                await self._sync()
                self._end(self._waiting[:number])
                del self._waiting[:number]
        except (Exception, CancelledError) as failure:
            self._fail_waiters(failure)
            raise
        finally:
            self._syncer = None

    def _ended(self, syncer: Task[None]) -> None:
        """End all waits if the task that syncs was cancelled before its first step."""
        if syncer is self._syncer:
            self._syncer = None
            self._fail_waiters(CancelledError())

    def _fail_waiters(self, failure: BaseException) -> None:
        waiting, self._waiting = self._waiting, []
        for _, waiter in waiting:
            if not waiter.done():
                waiter.set_exception(failure)

    async def _sync(self) -> None:
        """Write and sync all entries; those that the disk refuses are in doubt on return."""
        with suppress(OSError, StorageError):
            self.write()
        if (segment := self._segment) is None:
            return  # all entries are durable, or may be lost
        last, outcome = segment.last, list[OSError | LogStopped | None]()

        def sync() -> None:
            try:
                segment.sync()
            except (OSError, LogStopped) as error:
                outcome.append(error)
            else:
                outcome.append(None)

        self._syncing = segment
        try:
            await self._host.workers.run(sync)
        finally:
            # The kernel reports a failure once, so it counts even if this task is cancelled.
            self._syncing = None
            if segment is not self._segment:
                segment.close()
            if outcome and outcome[0] is not None:
                self._lose_entries(segment, outcome[0])
            elif outcome and last not in self.doubtful:
                self.durable, self._is_root_synced = max(self.durable, last), True
                self._finish_if_full()

    def _lose_entries(
        self, segment: WalSegment, error: Exception, *, are_written: bool = True
    ) -> None:
        """Abandon a segment; its entries after ``durable``, and gathered ones, are in doubt."""
        is_open = segment is self._segment
        if not is_open and (segment.last <= self.durable or segment.last in self.doubtful):
            return  # it was abandoned, or finished durably, during the sync
        self.last = max(self.last, segment.last)
        numbers = range(self.durable + 1, self.last + 1)
        self.doubtful.add(numbers, error, are_written=are_written)
        self._gathered, self._gathered_bytes = [], 0
        if is_open:
            self._finish(segment)
        self.on_doubt(self.durable)

    @property
    def has_segments(self) -> bool:
        """Whether there is a segment, open or finished."""
        return bool(self._segment or self.segments)

    @property
    def has_superfluous_segment(self) -> bool:
        """Whether a checkpoint would let a finished segment be removed."""
        return bool(self.segments) and self.segments[0][1] <= self.durable

    # -- segments ------------------------------------------------------------------------

    def prepare(self) -> None:
        """Open the segment of the next append; sync a full segment before another begins.

        If that barrier fails, ``on_doubt`` has been called on return. Raises as ``append``.
        """
        segment = self._segment
        if segment is None or segment.size_bytes >= self._segment_bytes:
            self._finish_if_full()
            if self._segment is None:
                self._segment = self._new_segment()

    def _new_segment(self) -> WalSegment:
        files = self._host.files
        for name in (DIRECTORY, RECORDS, SNAPSHOTS):
            path = join(self._root, name)
            if files.kind(path) is not FileKind.DIRECTORY:
                files.mkdir(path)
                self._is_root_synced = False
        own = (self.directory,)
        directories = own if self._is_root_synced else (self._root, *own)
        while True:
            self._number += 1
            path = join(self.directory, segment_name(self._number))
            try:
                segment = WalSegment.create(files, self._host.ids, path, self.last + 1, directories)
            except FileExistsError:
                continue
            except LogStopped as stopped:
                raise BarrierFailed(path, f"it could not be begun ({stopped.reason})") from stopped
            except OSError as error:
                raise_if_full(path, error)
                raise
            self._point_to(segment_name(self._number))
            return segment

    def _point_to(self, name: str) -> None:
        """Point the link ``current`` to the newest segment; it is for people only."""
        files = self._host.files
        link, following = join(self.directory, CURRENT), join(self.directory, NEXT_CURRENT)
        with suppress(OSError):
            if NEXT_CURRENT in files.listdir(self.directory):
                files.unlink(following)
            files.symlink(name, following)
            files.replace(following, link)

    def _finish_if_full(self) -> None:
        segment = self._segment
        if segment is None or segment.size_bytes < self._segment_bytes or self._syncing:
            return
        with suppress(OSError, StorageError):
            self.write()
        if segment is self._segment:
            self._finish_durably(segment)

    def _finish_durably(self, segment: WalSegment, refusal: OSError | None = None) -> None:
        """Finish a segment after a barrier; gathered entries are lost if it has refused them.

        A new segment begins only after all earlier entries are durable, so an execution never has
        an event in it and lacks an earlier one.
        """
        try:
            if segment.has_entries and segment.last > self.durable:
                segment.sync()
                self.durable, self._is_root_synced = segment.last, True
        except (OSError, LogStopped) as error:
            self._lose_entries(segment, error)
        else:
            if refusal is None:
                self._finish(segment)
            else:
                self._lose_entries(segment, refusal, are_written=False)

    def _finish(self, segment: WalSegment) -> None:
        self.segments.append((segment.path, segment.last))
        self._segment = None
        if segment is not self._syncing:
            segment.close()

    def sync_root(self) -> None:
        """Make the directories of the recording durable, if no barrier has; raises ``OSError``."""
        if not self._is_root_synced:
            self._host.files.sync_dir(self._root)
            self._is_root_synced = True

    def finish_through(self, sequence: int) -> int:
        """Finish the open segment if it has no entry above ``sequence``.

        Its entries are durable, or in doubt, also if a sync of it is still under way.

        Returns the number of the first segment that cannot be removed after that.
        """
        newest = self._segment
        if newest is not None and self.last <= sequence:
            self._finish(newest)
        needed = [path for path, last in self.segments if last > sequence]
        if needed:
            return number_of(needed[0])
        return self._number + (self._segment is None)

    def remove_before(self, segment: int) -> None:
        """Remove the segments below a number, the oldest first, without a barrier.

        A segment that the disk refuses to remove is removed later.
        """
        files = self._host.files
        with suppress(OSError):
            while self.segments and number_of(self.segments[0][0]) < segment:
                with suppress(FileNotFoundError):
                    files.unlink(self.segments[0][0])
                del self.segments[0]
            if not self.has_segments:
                files.unlink(join(self.directory, CURRENT))

    def close(self) -> None:
        """Close the log; all entries that need a barrier must be durable."""
        with suppress(OSError, StorageError):
            self.write()
        if self._segment is not None:
            self._finish(self._segment)


def _ignore(_durable: int) -> None:
    """Do nothing: no execution depends on the log."""
