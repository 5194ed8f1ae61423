"""Substrat's way to make a line durable: announce it first, in a file of its own."""

from __future__ import annotations

from posixpath import dirname

from system.errors import LogStopped
from system.ports import File, FileSystem, OpenMode
from system.storage.log_file import LogFile
from system.storage.transfer import write_all


class PendingWriter:
    """Announce the line in the pending file, append it, remove the pending file (S-07).

    The removal has no barrier of its own: a pending entry that comes back is told by its
    ``seq`` (hole R3). An append that failed must not come back, so its entry is spoilt
    in place before the failure is reported.
    """

    def __init__(self, files: FileSystem, file: LogFile, path: str) -> None:
        self._files = files
        self._file = file
        self._path = path

    def write(self, encoded: bytes) -> None:
        self._announce(encoded)
        try:
            self._file.append(encoded)
        except OSError:
            self._retract()
            raise
        self._file.commit()
        self._remove()

    def _announce(self, encoded: bytes) -> None:
        file = self._create()
        try:
            write_all(file, encoded, 0)
        except OSError:
            self._close(file)
            self._remove()
            raise
        try:
            file.fsync()
            self._files.sync_dir(dirname(self._path))
        except OSError as error:
            raise self._stopped("the barrier of its pending entry failed", error) from error
        finally:
            self._close(file)

    def _create(self) -> File:
        try:
            return self._files.open(self._path, OpenMode.CREATE)
        except FileExistsError:
            # Its removal failed; the line in it is durable in the log.
            self._files.unlink(self._path)
            return self._files.open(self._path, OpenMode.CREATE)

    def _retract(self) -> None:
        try:
            file = self._files.open(self._path, OpenMode.WRITE)
            try:
                write_all(file, b"\0", 0)
                file.fsync()
            finally:
                self._close(file)
        except OSError as error:
            raise self._stopped("a pending entry could not be retracted", error) from error
        self._remove()

    def _stopped(self, what: str, error: OSError) -> LogStopped:
        return LogStopped(self._path, f"{what} ({error})")

    def _remove(self) -> None:
        """Remove the pending file; one that stays is stale or torn, and harmless."""
        try:
            self._files.unlink(self._path)
        except OSError:
            return

    def _close(self, file: File) -> None:
        """Close a file whose content is settled one way or the other."""
        try:
            file.close()
        except OSError:
            return
