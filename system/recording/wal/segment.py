"""One segment of the write-ahead log, which this boot has created and appends to.

A boot never appends to a segment of an earlier boot. The first barrier of a segment also covers
its name, and the directories that were created for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from threading import Lock
from typing import Final

from system.errors import LogStopped
from system.ports import FileSystem, Ids, OpenMode
from system.recording.executions.entry_type import EntryType
from system.recording.executions.log_record import LogRecord, StoredLogRecord
from system.recording.executions.spool import PIECE_BYTES, chunks
from system.recording.wal.format import HEADER_BYTES, SegmentHeader, encode_entries, encode_entry
from system.storage.log_file import LogFile

_SALT_DIGITS: Final = 16
_KNOWN: Final = b'{"durable":%d,'


class WalSegment:
    """An open segment; ``last`` is the number of its last entry, ``size_bytes`` its length.

    ``sync`` may run in another thread while ``append`` runs.
    """

    def __init__(
        self, files: FileSystem, path: str, header: SegmentHeader, directories: tuple[str, ...]
    ) -> None:
        self.path = path
        self.size_bytes = 0
        self.last = header.first - 1
        self._files = files
        self._file = LogFile(files, path, 0)
        self._seed = header.crc
        # Their new entries are made durable by the first barrier.
        self._directories = directories
        self._syncing = Lock()
        self._failed_sync: OSError | LogStopped | None = None

    @classmethod
    def create(
        cls, files: FileSystem, ids: Ids, path: str, first: int, directories: tuple[str, ...]
    ) -> WalSegment:
        """Make the segment at ``path``; the first barrier syncs ``directories`` as well.

        Raises ``FileExistsError``, ``OSError`` or ``LogStopped``; then no segment was made.
        """
        header = SegmentHeader(first, int(ids.random_hex(_SALT_DIGITS), 16))
        segment = cls(files, path, header, directories)
        files.open(path, OpenMode.CREATE).close()
        try:
            segment._file.append(header.encoded())
        except BaseException:
            segment.close()
            with suppress(OSError):
                files.unlink(path)
            raise
        segment.size_bytes = HEADER_BYTES
        return segment

    @property
    def has_entries(self) -> bool:
        """Whether anything follows the header."""
        return self.size_bytes > HEADER_BYTES

    def append(self, log_records: Sequence[LogRecord], durable: int) -> None:
        """Append log records of one entry each; ``durable`` is the last number known to be durable.

        Raises ``OSError`` if nothing of them is left, or ``LogStopped`` if that is not certain.
        Then their numbers are used up.
        """
        known = _KNOWN % durable
        entries = [(entry_type, known + encoded[1:]) for entry_type, encoded in log_records]
        if durable == self.last:
            # Only the first entry may directly follow the last durable one.
            entries[0] = log_records[0]
        content, last = encode_entries(entries, self.last + 1, self._seed), self.last + len(entries)
        try:
            self._file.append(content)
        except LogStopped:
            self.last = last
            raise
        self.last = last
        self.size_bytes += len(content)

    def append_pieces(
        self, log_records: Sequence[LogRecord | StoredLogRecord], durable: int
    ) -> None:
        """Append log records of any length, as ``append``; raises also their errors."""
        sequence, seed = self.last, self._seed

        def entries() -> Iterator[bytes]:
            nonlocal sequence
            known = b"{" if durable == sequence else _KNOWN % durable
            for log_record in log_records:
                for payload, is_last in _payloads(_with_known(log_record.pieces(), known)):
                    sequence += 1
                    entry_type = log_record.entry_type if is_last else EntryType.PART
                    yield encode_entry(entry_type, sequence, payload, seed)
                known = _KNOWN % durable

        try:
            self.size_bytes += self._file.append_all(chunks(entries()))
        except LogStopped:
            self.last = sequence
            raise
        self.last = sequence

    def sync(self) -> None:
        """Make all entries durable; raises ``OSError`` or ``LogStopped``.

        The kernel reports a failure to one call only, so every later call raises it again. A call
        waits for one that is running.
        """
        with self._syncing:
            if self._failed_sync is not None:
                raise self._failed_sync
            try:
                self._file.commit()
                for directory in self._directories:
                    self._files.sync_dir(directory)
            except (OSError, LogStopped) as error:
                self._failed_sync = error
                raise
            self._directories = ()

    def close(self) -> None:
        """Close the descriptor; durable entries do not depend on it."""
        with suppress(OSError):
            self._file.close()


def _with_known(pieces: Iterable[bytes], known: bytes) -> Iterator[bytes]:
    """Yield the JSON of a log record in pieces, with ``known`` in place of its first brace."""
    beginning = known
    for piece in pieces:
        yield beginning + (piece[1:] if beginning else piece)
        beginning = b""


def _payloads(encoded: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield the JSON of a log record as payloads of entries, each with whether it is the last.

    No later one begins with ``{"``: read without those before it, it might look like the beginning
    of a log record.
    """
    waiting = b""
    for piece in chunks(encoded, PIECE_BYTES):
        braces = b""
        if waiting:
            # A text may end with several.
            behind = piece.lstrip(b"{")
            braces = piece[: len(piece) - len(behind)] if behind.startswith(b'"') else b""
            yield waiting + braces, False
        waiting = piece[len(braces) :]
    yield waiting, True
