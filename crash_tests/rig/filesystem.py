"""The runtime's file system port, on the simulated disk: the same calls that the real host makes.

Kept call for call like ``system/host.py``, because a crash point is a call: whatever the
real host does in one system call must be one operation here.
"""

from __future__ import annotations

import fcntl
import os
import stat
from functools import lru_cache
from typing import Final

from sim.disk.calls.process import Process
from system.ports import FileKind, OpenMode

_FLAGS: Final = {
    OpenMode.READ: os.O_RDONLY | os.O_CLOEXEC,
    OpenMode.WRITE: os.O_RDWR | os.O_CLOEXEC,
    OpenMode.CREATE: os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
    OpenMode.APPEND: os.O_RDWR | os.O_APPEND | os.O_CLOEXEC,
}
_FILE_MODE: Final = 0o644
_DIRECTORY_MODE: Final = 0o755


class SimulatedFile:
    """One open file of a simulated host; implements ``system.ports.File``."""

    __slots__ = ("_descriptor", "_handle")

    def __init__(self, process: Process, descriptor: int) -> None:
        self._handle = process
        self._descriptor = descriptor

    def pread(self, size_bytes: int, offset: int) -> bytes:
        """Return up to ``size_bytes`` from ``offset`` (bytes)."""
        return self._handle.pread(self._descriptor, size_bytes, offset)

    def pwrite(self, data: bytes, offset: int) -> int:
        """Write at ``offset`` (bytes); return what was taken."""
        return self._handle.pwrite(self._descriptor, data, offset)

    def append(self, data: bytes) -> int:
        """Write at the end; return what was taken."""
        return self._handle.write(self._descriptor, data)

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to ``size_bytes``, or let it grow to it with zeros."""
        self._handle.ftruncate(self._descriptor, size_bytes)

    def size(self) -> int:
        """Return the size in bytes."""
        return self._handle.size_of(self._descriptor)

    def fsync(self) -> None:
        """Make content and attributes durable."""
        self._handle.fsync(self._descriptor)

    def fdatasync(self) -> None:
        """Make content and size durable."""
        self._handle.fdatasync(self._descriptor)

    def lock(self) -> None:
        """Take the exclusive ``flock``; ``BlockingIOError`` when somebody holds it."""
        self._handle.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Close the descriptor."""
        self._handle.close(self._descriptor)


class SimulatedFileSystem:
    """The files of one simulated host; implements ``system.ports.FileSystem``.

    The root of the host's data is the root of the disk.
    """

    __slots__ = ("_handle",)

    def __init__(self, process: Process) -> None:
        self._handle = process

    def open(self, path: str, mode: OpenMode) -> SimulatedFile:
        """Open a regular file as ``mode`` says."""
        descriptor = self._handle.open(_absolute(path), _FLAGS[mode], _FILE_MODE)
        return SimulatedFile(self._handle, descriptor)

    def read(self, path: str) -> tuple[bytes, int]:
        """Return what one read gives of a file, from its start, and its size in bytes."""
        return self._handle.read_file(_absolute(path))

    def replace(self, source: str, target: str) -> None:
        """Rename ``source`` over ``target``."""
        self._handle.replace(_absolute(source), _absolute(target))

    def unlink(self, path: str) -> None:
        """Remove a name."""
        self._handle.unlink(_absolute(path))

    def mkdir(self, path: str) -> None:
        """Make one directory."""
        self._handle.mkdir(_absolute(path), _DIRECTORY_MODE)

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        self._handle.rmdir(_absolute(path))

    def listdir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        return sorted(self._handle.listdir(_absolute(path)))

    def kind(self, path: str) -> FileKind | None:
        """Return what is at ``path``, or None when there is nothing."""
        try:
            mode = self._handle.mode_of(_absolute(path))
        except FileNotFoundError:
            return None
        if stat.S_ISREG(mode):
            return FileKind.FILE
        return FileKind.DIRECTORY if stat.S_ISDIR(mode) else FileKind.OTHER

    def sync_dir(self, path: str) -> None:
        """Make the entries of a directory durable."""
        self._handle.sync_directory(_absolute(path))


# Kept, since the same few paths are asked for over and over.
@lru_cache(maxsize=8192)
def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"
