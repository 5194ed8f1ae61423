"""The main file of a running event log: appended to, committed, and cut after a failure.

Writing and committing are apart, so that one barrier covers several lines.
"""

from __future__ import annotations

from system.errors import LogStopped
from system.ports import FileSystem, OpenMode
from system.storage.transfer import append_all, read_all


class LogFile:
    """A recovered log, open for appending; it ends at ``size_bytes``, whole and durable.

    ``kept_bytes`` is how far it stands with all that a caller was told of, until a barrier
    fails: from then on, with what is durable.
    """

    def __init__(self, files: FileSystem, path: str, size_bytes: int) -> None:
        self.path = path
        self.kept_bytes = size_bytes
        self._durable_bytes = size_bytes
        self._written_bytes = size_bytes
        self._file = files.open(path, OpenMode.APPEND)

    def append(self, encoded: bytes) -> None:
        """Write at the end.

        Raises ``OSError`` when it could not, with nothing of it left in the file (R19),
        or ``LogStopped`` when that is not certain.
        """
        try:
            append_all(self._file, encoded)
        except OSError:
            self._cut()
            raise
        self._written_bytes += len(encoded)

    def commit(self) -> None:
        """Make everything written durable, or raise ``LogStopped``."""
        try:
            self._file.fdatasync()
        except OSError as error:
            raise self._stopped("its barrier failed", error) from error
        self.kept_bytes = self._durable_bytes = self._written_bytes

    def note(self, encoded: bytes) -> None:
        """Write at the end, and leave it to a later ``commit``; raises as ``append``."""
        self.append(encoded)
        self.kept_bytes = self._written_bytes

    def _cut(self) -> None:
        try:
            self._file.truncate(self._written_bytes)
            self._file.fsync()
        except OSError as error:
            raise self._stopped("a partial line could not be removed", error) from error

    def _stopped(self, what: str, error: OSError) -> LogStopped:
        # What the kernel could not write it may have dropped, notes from before as well.
        self.kept_bytes = self._durable_bytes
        return LogStopped(self.path, f"{what} ({error})")

    def read(self) -> bytes:
        """Return the first ``kept_bytes``; ``OSError`` as from ``pread``."""
        return read_all(self._file, 0, self.kept_bytes)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
