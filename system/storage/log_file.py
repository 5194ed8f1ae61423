"""The main file of a running event log: appended to, committed, and cut after a failure.

Writing and committing are apart, so that one barrier covers several lines.

The descriptor is opened by the first write, and may be given back while the log rests: a
thousand sessions need not be a thousand descriptors. Linux tells of a failed writeback once,
to the descriptors that were open before it. So one that has written what no barrier covers
is not closed: its report would go with it, and the barrier of the next one would prove
nothing (fsyncgate). ``rest`` commits first.
"""

from __future__ import annotations

from contextlib import suppress

from system.errors import LogStopped
from system.ports import File, FileSystem, OpenMode
from system.storage.transfer import append_all, read_all


class LogFile:
    """A recovered log that can be appended to; it ends at ``size_bytes``, whole and durable.

    ``kept_bytes`` is how far it stands with all that a caller was told of, until a barrier
    fails: from then on, with what is durable.
    """

    def __init__(self, files: FileSystem, path: str, size_bytes: int) -> None:
        self.path = path
        self.kept_bytes = size_bytes
        self._durable_bytes = size_bytes
        self._written_bytes = size_bytes
        self._files = files
        self._file: File | None = None

    def append(self, encoded: bytes) -> None:
        """Write at the end.

        Raises ``OSError`` when it could not, with nothing of it left in the file (R19),
        or ``LogStopped`` when that is not certain.
        """
        file = self._opened()
        try:
            append_all(file, encoded)
        except OSError:
            self._cut(file)
            raise
        self._written_bytes += len(encoded)

    def commit(self) -> None:
        """Make everything written durable, or raise ``LogStopped``."""
        try:
            self._opened().fdatasync()
        except OSError as error:
            raise self._stopped("its barrier failed", error) from error
        self.kept_bytes = self._durable_bytes = self._written_bytes

    def append_unsynced(self, encoded: bytes) -> None:
        """Write at the end, and leave it to a later ``commit``; raises as ``append``."""
        self.append(encoded)
        self.kept_bytes = self._written_bytes

    def park(self) -> None:
        """Give the descriptor back until the next write; raises as ``commit``.

        What was written is durable then.
        """
        if self._durable_bytes != self._written_bytes:
            self.commit()
        # Its content is settled, whatever closing it says.
        with suppress(OSError):
            self.close()

    def _opened(self) -> File:
        if self._file is None:
            self._file = self._files.open(self.path, OpenMode.APPEND)
        return self._file

    def _cut(self, file: File) -> None:
        try:
            file.truncate(self._written_bytes)
            file.fsync()
        except OSError as error:
            raise self._stopped("a partial line could not be removed", error) from error

    def _stopped(self, what: str, error: OSError) -> LogStopped:
        # What the kernel could not write it may have dropped, notes from before as well.
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
