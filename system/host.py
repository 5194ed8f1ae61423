"""The ports of the runtime on the operating system: files, clocks, zones, random numbers, SQLite.

No other module of ``system`` imports them; the threads of the host are in ``workers.py``.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import stat
import time
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from datetime import tzinfo
from io import BytesIO
from posixpath import dirname, join
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo

import apsw

from system.errors import BadRootPath
from system.ports import NO_EFFECTS, Effects, File, FileKind, Host, OpenMode
from system.root import DATABASE
from system.storage.database_pragmas import DATABASE_PRAGMAS
from system.storage.durable_directory import make_durable_directory
from system.workers import RealWorkers

T = TypeVar("T")

MOST_ROOT_PATH_BYTES: Final = 512 - len(f"/{DATABASE}-journal")
"""SQLite opens a database only if the path of its journal has at most 512 bytes."""

_RANDOM_BYTES: Final = 4096

# Without O_NONBLOCK opening a FIFO waits for a writer; regular files ignore it.
_EVERY: Final = os.O_CLOEXEC | os.O_NONBLOCK
_FLAGS: Final = {
    OpenMode.READ: os.O_RDONLY | _EVERY,
    OpenMode.WRITE: os.O_RDWR | _EVERY,
    OpenMode.CREATE: os.O_RDWR | os.O_CREAT | os.O_EXCL | _EVERY,
    OpenMode.APPEND: os.O_RDWR | os.O_APPEND | _EVERY,
}
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class RealFile:
    """A descriptor of the operating system."""

    __slots__ = ("_calls", "_descriptor", "_locks")

    def __init__(self, descriptor: int, calls: Any, locks: Any) -> None:
        self._descriptor = descriptor
        self._calls = calls
        self._locks = locks

    def pread(self, size_bytes: int, offset: int) -> bytes:
        data: bytes = self._calls.pread(self._descriptor, size_bytes, offset)
        return data

    def pwrite(self, data: bytes, offset: int) -> int:
        written: int = self._calls.pwrite(self._descriptor, data, offset)
        return written

    def append(self, data: bytes) -> int:
        written: int = self._calls.write(self._descriptor, data)
        return written

    def truncate(self, size_bytes: int) -> None:
        self._calls.ftruncate(self._descriptor, size_bytes)

    def size(self) -> int:
        size_bytes: int = self._calls.fstat(self._descriptor).st_size
        return size_bytes

    def fsync(self) -> None:
        self._calls.fsync(self._descriptor)

    def fdatasync(self) -> None:
        self._calls.fdatasync(self._descriptor)

    def lock(self) -> None:
        self._locks.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        # Its number may be that of another file from now on: later calls raise EBADF.
        descriptor, self._descriptor = self._descriptor, -1
        self._calls.close(descriptor)


class RealFileSystem:
    """The files below ``root``, a path of the operating system; ``""`` takes any path as it is.

    ``calls`` has the functions of the module ``os``, ``locks`` that of ``fcntl``; a simulated
    machine passes its own.
    """

    def __init__(self, root: str, calls: Any = os, locks: Any = fcntl) -> None:
        self._prefix = join(root, "")
        self._calls = calls
        self._locks = locks

    def open(self, path: str, mode: OpenMode) -> File:
        if mode is OpenMode.CREATE:
            descriptor = self._calls.open(self._prefix + path, _FLAGS[mode], 0o644)
        else:
            descriptor, _ = self._opened(path, _FLAGS[mode])
            if mode is OpenMode.WRITE:
                # ext4 of Linux 6.18 loses what is written again over a failed append, while
                # the place is in the page cache. Data that is still to be written stays there.
                self._calls.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return RealFile(descriptor, self._calls, self._locks)

    def read(self, path: str) -> tuple[bytes, int]:
        descriptor, size_bytes = self._opened(path, _FLAGS[OpenMode.READ])
        try:
            data = self._calls.pread(descriptor, size_bytes, 0) if size_bytes else b""
            return data, size_bytes
        finally:
            self._calls.close(descriptor)

    def _opened(self, path: str, flags: int) -> tuple[int, int]:
        """Open an existing regular file; return the descriptor and the size in bytes."""
        descriptor = self._calls.open(self._prefix + path, flags)
        try:
            status = self._calls.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file", self._prefix + path)
        except OSError:
            self._calls.close(descriptor)
            raise
        return descriptor, status.st_size

    def replace(self, source: str, target: str) -> None:
        self._calls.replace(self._prefix + source, self._prefix + target)

    def symlink(self, target: str, path: str) -> None:
        self._calls.symlink(target, self._prefix + path)

    def readlink(self, path: str) -> str:
        target: str = self._calls.readlink(self._prefix + path)
        return target

    def unlink(self, path: str) -> None:
        self._calls.unlink(self._prefix + path)

    def mkdir(self, path: str) -> None:
        self._calls.mkdir(self._prefix + path)

    def rmdir(self, path: str) -> None:
        self._calls.rmdir(self._prefix + path)

    def listdir(self, path: str) -> list[str]:
        return sorted(self._calls.listdir(self._prefix + path))

    def kind(self, path: str) -> FileKind | None:
        found, mode = self._prefix + path, 0
        try:
            mode = self._calls.lstat(found).st_mode
            if stat.S_ISLNK(mode):
                mode = self._calls.stat(found).st_mode
        except FileNotFoundError:
            # A link that leads to no file has a mode of its own.
            return FileKind.OTHER if mode else None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            return FileKind.OTHER
        if stat.S_ISREG(mode):
            return FileKind.FILE
        return FileKind.DIRECTORY if stat.S_ISDIR(mode) else FileKind.OTHER

    def sync_dir(self, path: str) -> None:
        calls = self._calls
        descriptor = calls.open(self._prefix + path, _DIRECTORY)
        try:
            calls.fsync(descriptor)
        finally:
            calls.close(descriptor)


class RealClock:
    """The operating system's clocks."""

    def wall_ns(self) -> int:
        return time.time_ns()

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    async def sleep(self, delay_ns: int) -> None:
        await asyncio.sleep(delay_ns / 1e9)

    def timeout(self, delay_ns: int) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(delay_ns / 1e9)


class RealIds:
    """Random ids from the operating system, which is asked for the bytes of many at once.

    During each such call another thread can take the interpreter, and the caller waits for it.
    """

    def __init__(self) -> None:
        self._unused = BytesIO()
        self._process = os.getpid()

    def uuid_hex(self) -> str:
        return self.random_hex(32)

    def random_hex(self, digits: int) -> str:
        if self._process != os.getpid():
            # A child process must not give the ids that its parent gives.
            self._unused, self._process = BytesIO(), os.getpid()
        size_bytes = (digits + 1) // 2
        assert size_bytes <= _RANDOM_BYTES
        while len(found := self._unused.read(size_bytes)) < size_bytes:
            self._unused = BytesIO(os.urandom(_RANDOM_BYTES))
        return found.hex()[:digits]


class RealDatabase:
    """SQLite on the operating system's files, below ``root``."""

    def __init__(self, root: str) -> None:
        self._root = root

    def open(self, path: str) -> apsw.Connection:
        _check_root_path(self._root)
        connection = apsw.Connection(join(self._root, path))
        try:
            for pragma in DATABASE_PRAGMAS:
                connection.execute(pragma).fetchall()
        except BaseException:
            connection.close(True)
            raise
        return connection


def database_in_memory() -> apsw.Connection:
    """Return an empty database without a file."""
    return apsw.Connection(":memory:")


class RealZones:
    """The zones of the operating system, or else those of the package ``tzdata``."""

    def zone(self, name: str) -> tzinfo:
        try:
            return ZoneInfo(name)
        except (ValueError, OSError):
            # A name such as ".." or "Europe" is no zone either.
            raise KeyError(name) from None


def real_host(root: str, effects: Effects = NO_EFFECTS) -> Host:
    """Return a host with its data below the directory ``root``; ``effects`` performs its actions.

    The directory and its ancestors are created durably where they are missing. Raises
    ``BadRootPath`` if SQLite cannot open a database in it, or ``OSError`` if one cannot be created.
    """
    absolute = os.path.abspath(root)
    _check_root_path(absolute)
    if not os.path.isdir(absolute):
        make_durable_directory(RealFileSystem(""), absolute)
    else:
        # The process that created it may have been killed before the sync. A parent that
        # this process may not read was not changed by an earlier run of it.
        with suppress(PermissionError):
            RealFileSystem("").sync_dir(dirname(absolute))
    return replace(reading_host(root), effects=effects)


def _check_root_path(absolute: str) -> None:
    """Raise ``BadRootPath`` unless SQLite can open ``state.db`` in a directory.

    SQLite resolves symbolic links.
    """
    try:
        absolute.encode()
    except UnicodeEncodeError:
        raise BadRootPath("is not UTF-8, as SQLite requires it") from None
    paths = absolute, os.path.realpath(absolute)
    size_bytes = max(len(os.fsencode(path)) for path in paths)
    if size_bytes > MOST_ROOT_PATH_BYTES:
        raise BadRootPath(f"has bytes={size_bytes}, SQLite takes at most {MOST_ROOT_PATH_BYTES}")


def reading_host(root: str) -> Host:
    """Return a host with its data below the existing directory ``root``; nothing is changed."""
    absolute = os.path.abspath(root)
    return Host(
        RealFileSystem(absolute),
        RealClock(),
        RealIds(),
        RealDatabase(absolute),
        RealWorkers(),
        RealZones(),
    )


def run(main: Coroutine[None, None, T]) -> T:
    """Run ``main`` on a new event loop; return its result or raise its exception.

    When it has ended, all other tasks are cancelled, and also those that a cancelled task starts,
    as a runtime that ``main`` did not close does. Ctrl-C cancels ``main``, and raises
    ``KeyboardInterrupt`` at the end.
    """
    return asyncio.run(_alone(main))


async def _alone(main: Coroutine[None, None, T]) -> T:
    """Await ``main``, and then the end of all other tasks."""
    try:
        return await main
    finally:
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.wait(others)
