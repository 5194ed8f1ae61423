"""The framing ``pending``: lines are made durable in a separate file before they are appended.

That file, the pending entry, has every line that is not durable in the log yet, earlier unsynced
lines included, so that log and entry together never have a gap. An empty line ends it; without
that, the beginning of an entry could be taken for a complete one.
"""

from __future__ import annotations

from typing import Final

from system.errors import LogStopped
from system.ports import File, FileSystem, OpenMode
from system.storage.log_file import LogFile
from system.storage.path import parent_of
from system.storage.transfer import write_all

END_OF_ENTRY: Final = b"\n"


class PendingWriter:
    """Writes lines to the pending entry, appends them to the log, and removes the entry.

    The removal has no barrier: an entry that reappears is recognised by its ``seq``. The lines
    of a failed append must not reappear, so their entry is overwritten in place before the
    failure is reported.
    """

    def __init__(self, files: FileSystem, file: LogFile, path: str) -> None:
        self._files = files
        self._file = file
        self._path = path
        self._unsynced = b""

    def write(self, encoded: bytes) -> None:
        self._announce(self._unsynced + encoded + END_OF_ENTRY)
        try:
            self._file.append(encoded)
        except OSError:
            self._retract()
            raise
        self._file.commit()
        self._unsynced = b""
        self._remove()

    def append_unsynced(self, encoded: bytes) -> None:
        self._file.append_unsynced(encoded)
        self._unsynced += encoded

    def park(self) -> None:
        self._file.park()
        self._unsynced = b""

    def _announce(self, entry: bytes) -> None:
        file = self._create()
        try:
            write_all(file, entry, 0)
        except OSError:
            self._close(file)
            self._remove()
            raise
        try:
            file.fsync()
            self._files.sync_dir(parent_of(self._path))
        except OSError as error:
            raise self._stopped("the barrier of its pending entry failed", error) from error
        finally:
            self._close(file)

    def _create(self) -> File:
        try:
            return self._files.open(self._path, OpenMode.CREATE)
        except FileExistsError:
            # An earlier removal failed; the lines of that entry are durable in the log.
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
        """Remove the pending file; one that stays is stale or torn, and is ignored."""
        try:
            self._files.unlink(self._path)
        except OSError:
            return

    def _close(self, file: File) -> None:
        """Close a file whose durability does not depend on it."""
        try:
            file.close()
        except OSError:
            return
