"""One open file of SQLite on the disk: the I/O methods of ``os_unix.c`` over a process.

It makes the same operations as SQLite's unix VFS, claims the same characteristics of the
device, and writes until all bytes are written. Shared memory of a WAL is memory of this
process. As in the unix VFS it ends when no file maps it any more; SQLite rebuilds it from the WAL
when it is mapped again.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from powercut.interpose import sqlite_library as lib
from powercut.interpose.lifetime import Lifetime
from sim.disk.calls.process import Process
from sim.errors import HarnessError, PowerOff, SimulatedCrash
from sim.sqlite.file_lock import NONE, SHARED, FileLock

_SECTOR_BYTES: Final = 4096
_POWERSAFE_OVERWRITE: Final = 0x1000
_SHM_UNLOCK, _SHM_SHARED = 1, 4
_FCNTL_LOCKSTATE, _FCNTL_LAST_ERRNO, _FCNTL_SIZE_HINT, _FCNTL_CHUNK_SIZE = 1, 4, 5, 6
_FCNTL_PERSIST_WAL, _FCNTL_POWERSAFE_OVERWRITE, _FCNTL_HAS_MOVED = 10, 13, 20


class Content(NamedTuple):
    """A descriptor of the disk, and the path that it was opened with."""

    descriptor: int
    path: str


class SharedMemory:
    """The shared memory of the WAL of one database: regions, and eight locks.

    ``users`` are the files that map it. ``holders`` has for each lock the files that hold it;
    ``exclusive`` is the one that may write.
    """

    def __init__(self) -> None:
        self.regions: list[ctypes.Array[ctypes.c_char]] = []
        self.users: set[SqliteFile] = set()
        self.holders: list[set[SqliteFile]] = [set() for _ in range(8)]
        self.exclusive: list[SqliteFile | None] = [None] * 8


class SqliteFile:
    """One ``sqlite3_file``. ``level`` is the lock that it holds on a database.

    ``directory_is_due`` means that the directory entry may not be durable yet. After the end of
    its process every method answers, and changes nothing.
    """

    def __init__(
        self,
        lifetime: Lifetime,
        content: Content,
        lock: FileLock | None,
        shared: SharedMemory,
        *,
        directory_is_due: bool,
    ) -> None:
        self._lifetime = lifetime
        self._descriptor = content.descriptor
        self._path = content.path
        self._lock = lock
        self._shared = shared
        self._directory_is_due = directory_is_due
        self._characteristics = _POWERSAFE_OVERWRITE
        self._persist_wal = 0
        self._last_errno = 0
        self.level = NONE

    @property
    def is_off(self) -> bool:
        """Whether the process that opened it is dead."""
        return self._lifetime.poisoned

    def _try(self, code: int, work: Callable[[], object]) -> int:
        """Do some work; return ``code`` if it fails."""
        try:
            work()
        except OSError as error:
            self._last_errno = error.errno or 0
            return lib.FULL if error.errno == errno.ENOSPC else code
        except (SimulatedCrash, PowerOff, HarnessError):
            return code
        return lib.OK

    # -- data ------------------------------------------------------------------------------

    def read(self, buffer: int, amount: int, offset: int) -> int:
        data = b""

        def work() -> None:
            nonlocal data
            while len(data) < amount:
                piece = self._lifetime.call(
                    Process.pread, self._descriptor, amount - len(data), offset + len(data)
                )
                if not piece:
                    break
                data += piece

        code = self._try(lib.IO_READ, work)
        if code:
            return code
        ctypes.memmove(buffer, data.ljust(amount, b"\0"), amount)
        return lib.OK if len(data) == amount else lib.IO_SHORT_READ

    def write(self, buffer: int, amount: int, offset: int) -> int:
        data = ctypes.string_at(buffer, amount)

        def work() -> None:
            done = 0
            while done < amount:
                done += self._lifetime.call(
                    Process.pwrite, self._descriptor, data[done:], offset + done
                )

        return self._try(lib.IO_WRITE, work)

    def truncate(self, size: int) -> int:
        return self._try(lib.IO_TRUNCATE, lambda: self._lifetime.ftruncate(self._descriptor, size))

    def sync(self) -> int:
        """Call fdatasync; after the first one of a journal, sync its directory."""
        call = self._lifetime.call
        code = self._try(lib.IO_FSYNC, lambda: call(Process.fdatasync, self._descriptor))
        if not code and self._directory_is_due:
            self._directory_is_due = False
            self._try(lib.IO_DIRECTORY_FSYNC, lambda: sync_directory(self._lifetime, self._path))
        return code

    def size(self) -> int:
        return self._lifetime.fstat(self._descriptor).st_size

    def close(self) -> None:
        self.unlock(NONE)
        self.unmap()
        with suppress(OSError, PowerOff, SimulatedCrash):
            self._lifetime.close(self._descriptor)

    # -- locks -----------------------------------------------------------------------------

    def lock(self, level: int) -> int:
        if self.is_off:
            return lib.IO_ERROR
        if self._lock is None or self._lock.acquire(self, level):
            return lib.OK
        return lib.BUSY

    def unlock(self, level: int) -> None:
        if self._lock is not None:
            self._lock.release(self, level)

    def is_reserved(self) -> bool:
        return self._lock is not None and self._lock.level() > SHARED

    # -- shared memory ---------------------------------------------------------------------

    def map(self, region: int, size_bytes: int, *, extends: bool) -> int:
        """Return the address of a region of the shared memory; 0 if it does not exist."""
        self._shared.users.add(self)
        regions = self._shared.regions
        if region >= len(regions) and not extends:
            return 0
        while region >= len(regions):
            regions.append(ctypes.create_string_buffer(size_bytes))
        return ctypes.addressof(regions[region])

    def lock_memory(self, first: int, count: int, flags: int) -> int:
        """Take or release locks; fail without a mapping, or if a lock is taken, even by itself."""
        shared, numbers = self._shared, range(first, first + count)
        if self not in shared.users:
            return lib.IO_SHM_LOCK
        if flags & _SHM_UNLOCK:
            self._release_memory(numbers)
            return lib.OK
        is_shared = bool(flags & _SHM_SHARED)
        for number in numbers:
            if shared.exclusive[number] is not self and (
                shared.exclusive[number] is not None or (shared.holders[number] and not is_shared)
            ):
                return lib.BUSY
        for number in numbers:
            shared.holders[number].add(self)
            if not is_shared:
                shared.exclusive[number] = self
        return lib.OK

    def unmap(self) -> None:
        """Release all locks; the last file that maps the memory ends it."""
        shared = self._shared
        self._release_memory(range(len(shared.holders)))
        shared.users.discard(self)
        if not shared.users:
            shared.regions.clear()

    def _release_memory(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._shared.holders[number].discard(self)
            if self._shared.exclusive[number] is self:
                self._shared.exclusive[number] = None

    # -- properties ------------------------------------------------------------------------

    @property
    def characteristics(self) -> int:
        return self._characteristics

    @property
    def sector_bytes(self) -> int:
        return _SECTOR_BYTES

    def control(self, operation: int, pointer: int) -> int:
        """Handle the operations that the unix VFS handles."""
        if operation in {_FCNTL_SIZE_HINT, _FCNTL_CHUNK_SIZE}:
            return lib.OK
        if operation not in {
            _FCNTL_LOCKSTATE, _FCNTL_LAST_ERRNO, _FCNTL_PERSIST_WAL, _FCNTL_POWERSAFE_OVERWRITE,
            _FCNTL_HAS_MOVED,
        }:  # fmt: skip
            return lib.NOT_FOUND
        answer = ctypes.c_int.from_address(pointer)
        if operation == _FCNTL_LOCKSTATE:
            answer.value = self.level
        elif operation == _FCNTL_LAST_ERRNO:
            answer.value = self._last_errno
        elif operation == _FCNTL_HAS_MOVED:
            answer.value = self._has_moved()
        elif operation == _FCNTL_PERSIST_WAL:
            self._persist_wal = self._persist_wal if answer.value < 0 else answer.value
            answer.value = self._persist_wal
        else:
            if answer.value >= 0:
                self._characteristics = _POWERSAFE_OVERWRITE if answer.value else 0
            answer.value = bool(self._characteristics)
        return lib.OK

    def _has_moved(self) -> bool:
        """Return whether the path of a database leads to another file now."""
        if self._lock is None or self.is_off:
            return False
        try:
            found = self._lifetime.call(Process.stat, self._path)
        except OSError:
            return True
        return found.st_ino != self._lifetime.fstat(self._descriptor).st_ino


class MemoryFile:
    """A temporary file of SQLite, which no crash leaves."""

    characteristics = _POWERSAFE_OVERWRITE
    sector_bytes = _SECTOR_BYTES

    def __init__(self) -> None:
        self._content = bytearray()

    def read(self, buffer: int, amount: int, offset: int) -> int:
        data = bytes(self._content[offset : offset + amount])
        ctypes.memmove(buffer, data.ljust(amount, b"\0"), amount)
        return lib.OK if len(data) == amount else lib.IO_SHORT_READ

    def write(self, buffer: int, amount: int, offset: int) -> int:
        self._content.extend(bytes(max(offset - len(self._content), 0)))
        self._content[offset : offset + amount] = ctypes.string_at(buffer, amount)
        return lib.OK

    def truncate(self, size: int) -> int:
        del self._content[size:]
        return lib.OK

    def sync(self) -> int:
        return lib.OK

    def size(self) -> int:
        return len(self._content)

    def close(self) -> None:
        self._content.clear()

    def lock(self, _level: int) -> int:
        return lib.OK

    def unlock(self, _level: int) -> None:
        pass

    def is_reserved(self) -> bool:
        return False

    def map(self, _region: int, _size_bytes: int, *, extends: bool) -> int:
        del extends
        return 0

    def lock_memory(self, _first: int, _count: int, _flags: int) -> int:
        return lib.OK

    def unmap(self) -> None:
        pass

    def control(self, _operation: int, _pointer: int) -> int:
        return lib.NOT_FOUND


def sync_directory(lifetime: Lifetime, path: str) -> None:
    """Make the entries of the directory of ``path`` durable; skip one that cannot be opened."""
    try:
        descriptor = lifetime.open(os.path.dirname(path) or "/", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        lifetime.call(Process.fdatasync, descriptor)
    finally:
        lifetime.close(descriptor)
