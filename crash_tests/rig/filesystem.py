"""The runtime's file system port on the simulated disk.

It makes the same calls as ``system/host.py``, in the same order, because crash points are
calls: one system call of the real host must be one operation here.
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
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_MODE: Final = 0o644
_DIRECTORY_MODE: Final = 0o755


class SimulatedFile:
    """One open file of a simulated host; implements ``system.ports.File``."""

    __slots__ = ("_descriptor", "_process")

    def __init__(self, process: Process, descriptor: int) -> None:
        self._process = process
        self._descriptor = descriptor

    def pread(self, size_bytes: int, offset: int) -> bytes:
        """Return up to ``size_bytes`` from ``offset`` (bytes)."""
        return self._process.pread(self._descriptor, size_bytes, offset)

    def pwrite(self, data: bytes, offset: int) -> int:
        """Write at ``offset`` (bytes); return the number of bytes written."""
        return self._process.pwrite(self._descriptor, data, offset)

    def append(self, data: bytes) -> int:
        """Write at the end; return the number of bytes written."""
        return self._process.write(self._descriptor, data)

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to ``size_bytes``, or extend it with zeros."""
        self._process.ftruncate(self._descriptor, size_bytes)

    def size(self) -> int:
        """Return the size in bytes."""
        return self._process.fstat(self._descriptor).st_size

    def fsync(self) -> None:
        """Make content and attributes durable."""
        self._process.fsync(self._descriptor)

    def fdatasync(self) -> None:
        """Make content and size durable."""
        self._process.fdatasync(self._descriptor)

    def lock(self) -> None:
        """Take the exclusive ``flock``; ``BlockingIOError`` if another descriptor holds it."""
        self._process.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Close the descriptor."""
        self._process.close(self._descriptor)


class SimulatedFileSystem:
    """The files of one simulated host; implements ``system.ports.FileSystem``.

    The root of the host's data is the root of the disk.
    """

    __slots__ = ("_process",)

    def __init__(self, process: Process) -> None:
        self._process = process

    def open(self, path: str, mode: OpenMode) -> SimulatedFile:
        """Open a regular file in ``mode``."""
        descriptor = self._process.open(_absolute(path), _FLAGS[mode], _FILE_MODE)
        return SimulatedFile(self._process, descriptor)

    def read(self, path: str) -> tuple[bytes, int]:
        """Return the result of one read from the start of a file, and its size in bytes."""
        process = self._process
        descriptor = process.open(_absolute(path), _FLAGS[OpenMode.READ])
        try:
            size_bytes = process.fstat(descriptor).st_size
            return process.pread(descriptor, size_bytes, 0) if size_bytes else b"", size_bytes
        finally:
            process.close(descriptor)

    def replace(self, source: str, target: str) -> None:
        """Rename ``source`` over ``target``."""
        self._process.replace(_absolute(source), _absolute(target))

    def unlink(self, path: str) -> None:
        """Remove a name."""
        self._process.unlink(_absolute(path))

    def mkdir(self, path: str) -> None:
        """Make one directory."""
        self._process.mkdir(_absolute(path), _DIRECTORY_MODE)

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        self._process.rmdir(_absolute(path))

    def listdir(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        return sorted(self._process.listdir(_absolute(path)))

    def kind(self, path: str) -> FileKind | None:
        """Return the kind of file at ``path``, or None if there is none."""
        try:
            mode = self._process.stat(_absolute(path)).st_mode
        except FileNotFoundError:
            return None
        if stat.S_ISREG(mode):
            return FileKind.FILE
        return FileKind.DIRECTORY if stat.S_ISDIR(mode) else FileKind.OTHER

    def sync_dir(self, path: str) -> None:
        """Make the entries of a directory durable."""
        process = self._process
        descriptor = process.open(_absolute(path), _DIRECTORY)
        try:
            process.fsync(descriptor)
        finally:
            process.close(descriptor)


# Cached, because a run uses the same few paths over and over.
@lru_cache(maxsize=8192)
def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"
