"""One segment of the write-ahead log, which this boot has made and appends to.

A boot never appends to a segment of an earlier one. The first barrier of a segment covers its
name as well, and the directories that were made for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from system.errors import LogStopped
from system.ports import FileSystem, Ids, OpenMode
from system.recording.spool import chunks
from system.recording.wal_format import HEADER_BYTES, EntryType, SegmentHeader, encode_entry
from system.storage.log_file import LogFile

_SALT_DIGITS: Final = 16


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

    @classmethod
    def create(
        cls, files: FileSystem, ids: Ids, path: str, first: int, directories: tuple[str, ...]
    ) -> WalSegment:
        """Make the segment at ``path``; the first barrier syncs ``directories`` as well.

        Raises ``FileExistsError``, or ``OSError`` or ``LogStopped`` with no segment made.
        """
        header = SegmentHeader(first, int(ids.random_hex(_SALT_DIGITS), 16))
        segment = cls(files, path, header, directories)
        files.open(path, OpenMode.CREATE).close()
        try:
            segment._write([header.encoded()])
        except BaseException:
            segment.close()
            with suppress(OSError):
                files.unlink(path)
            raise
        assert segment.size_bytes == HEADER_BYTES
        return segment

    def append(self, payloads: Iterable[tuple[int, Iterable[bytes]]]) -> None:
        """Append payloads with their types; one that is given in several pieces is so many entries.

        Raises ``OSError``, also that of a piece, with nothing of them left, or ``LogStopped``
        when that is not certain. Then the numbers of the entries are used up.
        """
        sequence, seed = self.last, self._seed

        def encoded() -> Iterator[bytes]:
            nonlocal sequence
            for entry_type, pieces in payloads:
                waiting = b""
                for piece in pieces:
                    if waiting:
                        sequence += 1
                        yield encode_entry(EntryType.PART, sequence, waiting, seed)
                    waiting = piece
                sequence += 1
                yield encode_entry(entry_type, sequence, waiting, seed)

        try:
            self._write(chunks(encoded()))
        except LogStopped:
            self.last = sequence
            raise
        self.last = sequence

    def _write(self, encoded: Iterable[bytes]) -> None:
        self.size_bytes += self._file.append_all(encoded)

    def sync(self) -> None:
        """Make all entries durable; raises ``OSError`` or ``LogStopped``."""
        self._file.commit()
        for directory in self._directories:
            self._files.sync_dir(directory)
        self._directories = ()

    def close(self) -> None:
        """Close the descriptor; durable entries do not depend on it."""
        with suppress(OSError):
            self._file.close()
