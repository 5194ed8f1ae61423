"""The main file of a running event log: appended to, committed, and cut after a failure.

Writing and committing are separate calls, so that one barrier covers several lines.

The first write opens the descriptor, and ``park`` closes it, so that a thousand sessions do
not hold a thousand descriptors. Linux reports a failed writeback once, to the descriptors
that were open at the time. A descriptor with unsynced writes is therefore never closed: the
report would be lost with it, and the sync of a later descriptor would prove nothing
(Rebello et al., ATC'20). ``park`` commits first.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from system.errors import LogStopped
from system.ports import File, FileSystem, OpenMode
from system.storage.transfer import append_remainder, read_all


class LogFile:
    """A recovered log file, whole and durable up to ``size_bytes``, to append to.

    It is the writer of the framing ``framed``: one write and one barrier for each group of
    lines. ``kept_bytes`` is the length of all lines that were reported as written; after a failed
    barrier, the length of the durable ones.
    """

    def __init__(self, files: FileSystem, path: str, size_bytes: int) -> None:
        self.path = path
        self.kept_bytes = size_bytes
        self._durable_bytes = size_bytes
        self._written_bytes = size_bytes
        self._files = files
        self._file: File | None = None

    def write(self, encoded: bytes) -> None:
        """Append and commit; raises as both."""
        self.append(encoded)
        self.commit()

    def append(self, encoded: bytes) -> None:
        """Write at the end.

        Raises ``OSError`` when the write failed and a partial line was removed again, or
        ``LogStopped`` when that is not certain.
        """
        self.append_all((encoded,))

    def append_all(self, pieces: Iterable[bytes]) -> int:
        """Write pieces one after the other, all or none of them; return their length.

        Raises as ``append``, and the errors of ``pieces``.
        """
        file, size_bytes = self._opened(), 0
        try:
            for encoded in pieces:
                if (taken := file.append(encoded)) < len(encoded):
                    append_remainder(file, encoded, taken)
                size_bytes += len(encoded)
        except OSError:
            self._cut(file)
            raise
        self._written_bytes += size_bytes
        return size_bytes

    def commit(self) -> None:
        """Sync the file; ``LogStopped`` if that fails."""
        try:
            self._opened().fdatasync()
        except OSError as error:
            raise self._stopped("its barrier failed", error) from error
        self.kept_bytes = self._durable_bytes = self._written_bytes

    def append_unsynced(self, encoded: bytes) -> None:
        """Write at the end; a later ``commit`` makes it durable. Raises as ``append``."""
        self.append(encoded)
        self.kept_bytes = self._written_bytes

    def park(self) -> None:
        """Commit unsynced writes and close the descriptor; raises as ``commit``."""
        if self._durable_bytes != self._written_bytes:
            self.commit()
        # The content is durable, so an error of close changes nothing.
        with suppress(OSError):
            self.close()

    def _opened(self) -> File:
        if self._file is None:
            self._file = self._files.open(self.path, OpenMode.APPEND)
        return self._file

    def _cut(self, file: File) -> None:
        try:
            # btrfs refuses any truncation while a quota is full.
            if file.size() > self._written_bytes:
                file.truncate(self._written_bytes)
                file.fsync()
        except OSError as error:
            raise self._stopped("a partial line could not be removed", error) from error

    def _stopped(self, what: str, error: OSError) -> LogStopped:
        # The kernel may have dropped any page that it could not write.
        self.kept_bytes = self._durable_bytes
        return LogStopped(self.path, f"{what} ({error})")

    def read(self) -> bytes:
        """Return the first ``kept_bytes``; ``OSError`` as from ``open`` and ``pread``."""
        if self._file is not None:
            return read_all(self._file, 0, self.kept_bytes)
        file = self._files.open(self.path, OpenMode.READ)
        try:
            return read_all(file, 0, self.kept_bytes)
        finally:
            file.close()

    def close(self) -> None:
        """Close the descriptor, if there is one."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
