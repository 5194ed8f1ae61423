"""The write-ahead log of one boot: numbered entries, and barriers that callers share.

An entry survives a kill as soon as ``append`` has returned, and a power cut after ``barrier``.
After a failed barrier the log continues: no more entries are written to the segment, the next
append begins a new one, and numbers are never used again (docs/recording.md, The write-ahead log).
"""

from __future__ import annotations

from asyncio import Event
from collections.abc import Callable, Sequence
from contextlib import suppress
from posixpath import join
from typing import Final

from system.errors import LogStopped, raise_if_full
from system.ports import FileKind, Host
from system.recording.executions.fact import Fact, StoredFact
from system.recording.records.errors import BarrierFailed
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

RECORDS: Final = "records"
SNAPSHOTS: Final = "snapshots"


class WriteAheadLog:
    """The log below ``root``, which continues after the entry ``last``.

    ``durable`` is the number of the last entry known to be durable. ``segments`` are finished
    segments, each with its path and its last entry number, the oldest first; ``number`` is the
    number of the newest segment. ``on_doubt`` is called after a failed barrier, when it is
    unknown which of the entries after ``durable`` are durable.
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
        self.on_doubt: Callable[[], None] = _ignore
        self._host = host
        self._root = root
        self._number = number
        self._segment_bytes = segment_bytes
        self._segment: WalSegment | None = None
        self._in_doubt: list[range] = []
        self._syncing: Event | None = None
        self._is_root_synced = True

    @property
    def directory(self) -> str:
        """The directory of the segments."""
        return join(self._root, DIRECTORY)

    def append(self, facts: Sequence[Fact | StoredFact]) -> int:
        """Append facts of executions, all or none of them; return the number of the last entry.

        Raises ``StorageFull`` or ``OSError`` if nothing was appended, or ``BarrierFailed`` if
        that is not certain.
        """
        segment = self._open_segment()
        try:
            segment.append(facts, self.durable)
        except LogStopped as stopped:
            raise self._failed(segment, stopped) from stopped
        except OSError as error:
            raise_if_full(segment.path, error)
            raise
        self.last = segment.last
        return self.last

    async def barrier(self, sequence: int) -> None:
        """Return when the entries up to ``sequence`` are durable.

        All entries that were appended before a sync begins share it; no sync is delayed to collect
        more. Raises ``BarrierFailed`` if it is unknown whether ``sequence`` is durable.
        """
        while sequence > self.durable and not self._is_doubtful(sequence):
            if self._syncing is None:
                await self._sync()
            else:
                await self._syncing.wait()
        if self._is_doubtful(sequence):
            raise BarrierFailed(self.directory, f"a barrier failed before entry {sequence}")

    async def _sync(self) -> None:
        segment = self._segment
        assert segment is not None, "entries behind the durable ones are in the open segment"
        last, outcome = segment.last, list[OSError | LogStopped | None]()

        def sync() -> None:
            try:
                segment.sync()
            except (OSError, LogStopped) as error:
                outcome.append(error)
            else:
                outcome.append(None)

        done = self._syncing = Event()
        try:
            await self._host.workers.run(sync)
        finally:
            # The kernel reports a failure once, so it counts even if this caller is cancelled.
            self._syncing = None
            done.set()
            if segment is not self._segment:
                segment.close()
            if outcome and outcome[0] is not None:
                self._failed(segment, outcome[0])
            elif outcome:
                self.durable, self._is_root_synced = last, True
                self._finish_if_full()

    def _is_doubtful(self, sequence: int) -> bool:
        return any(sequence in numbers for numbers in self._in_doubt)

    def _failed(self, segment: WalSegment, error: Exception) -> BarrierFailed:
        """Abandon a segment whose entries after ``durable`` are in doubt."""
        if segment is self._segment:
            self.last = max(self.last, segment.last)
            self._in_doubt.append(range(self.durable + 1, self.last + 1))
            self._finish(segment)
            self.on_doubt()
        return BarrierFailed(segment.path, f"its barrier failed ({error})")

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
        self._open_segment()

    def _open_segment(self) -> WalSegment:
        self._finish_if_full()
        if self._segment is None:
            self._segment = self._new_segment()
        return self._segment

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
        # A new segment begins only after all earlier entries are durable, so an execution
        # never has an event in it and lacks an earlier one.
        try:
            if segment.last > self.durable:
                segment.sync()
        except (OSError, LogStopped) as error:
            self._failed(segment, error)
        else:
            self.durable, self._is_root_synced = segment.last, True
            self._finish(segment)

    def _finish(self, segment: WalSegment) -> None:
        self.segments.append((segment.path, segment.last))
        self._segment = None
        if self._syncing is None:
            segment.close()

    def finish_through(self, sequence: int) -> int:
        """Finish the open segment if it has no entry above ``sequence``.

        Returns the number of the first segment that cannot be removed after that.
        """
        newest = self._segment
        if newest is not None and newest.last <= sequence and self._syncing is None:
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
        if self._segment is not None:
            self._finish(self._segment)


def _ignore() -> None:
    """Do nothing: no execution depends on the log."""
