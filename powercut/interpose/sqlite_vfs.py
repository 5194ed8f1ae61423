"""The VFS through which ``sqlite3`` of the standard library reaches the disk.

It is the default VFS of the library while a process is interposed. Paths below the root go to
the disk, all others to SQLite's unix VFS. Each lifetime has a VFS of its own, so a connection
that outlives its process cannot touch the disk of the next one. Temporary files are memory.

Random numbers (nonces of journals, salts of WALs) depend on the database, on the operations so
far and on the number of the lifetime, so that a run repeats itself and two lifetimes differ.
"""

from __future__ import annotations

import ctypes
import errno
import os
import posixpath
from collections.abc import Callable
from ctypes import byref, memmove, sizeof, string_at
from itertools import count
from typing import Any, Final

from powercut.interpose import sqlite_library as lib
from powercut.interpose.lifetime import Lifetime
from powercut.interpose.sqlite_file import (
    Content,
    MemoryFile,
    SharedMemory,
    SqliteFile,
    sync_directory,
)
from powercut.interpose.sqlite_library import File, SqliteLibrary, Vfs, make_methods
from sim.disk.calls.process import Process
from sim.errors import HarnessError, PowerOff, SimulatedCrash
from sim.sqlite.file_lock import file_lock

_NEEDS_DIRECTORY_SYNC: Final = lib.OPEN_MAIN_JOURNAL | lib.OPEN_SUPER_JOURNAL | lib.OPEN_WAL
_BESIDE_DATABASE: Final = lib.OPEN_MAIN_JOURNAL | lib.OPEN_WAL
_numbers: Final = count(1)


class SqliteVfs:
    """The VFS of one lifetime; ``struct`` stays in memory, for connections that outlive it."""

    def __init__(self, lifetime: Lifetime, library: SqliteLibrary) -> None:
        self.lifetime = lifetime
        self.library = library
        self.shared: dict[int, SharedMemory] = {}
        number = next(_numbers)
        _VFS[number] = self
        unix = library.unix
        self.struct = Vfs()
        memmove(byref(self.struct), byref(unix), sizeof(Vfs))
        self.struct.szOsFile = max(unix.szOsFile, sizeof(File))
        self.struct.pNext = None
        self._name = b"powercut-%d" % number
        self.struct.zName = self._name
        self.struct.pAppData = number
        for name, callback in _CALLBACKS.items():
            setattr(self.struct, name, callback)

    def activate(self) -> None:
        """Make this the default VFS."""
        self.library.register(byref(self.struct), 1)

    def deactivate(self) -> None:
        """Make the unix VFS the default again."""
        self.library.register(self.library.unix_address, 1)
        self.library.unregister(byref(self.struct))

    # -- files -----------------------------------------------------------------------------

    def open(self, path: str, wanted: int) -> tuple[SqliteFile, int]:
        """Return an open file, and the flags that it was opened with."""
        lifetime = self.lifetime
        if lifetime.poisoned:
            raise PowerOff("the process of this connection is dead")
        descriptor, given = self._descriptor(path, wanted)
        number = lifetime.fstat(descriptor).st_ino
        lock = None
        if wanted & lib.OPEN_MAIN_DB:
            lock = file_lock(lifetime.process.disk, number)
            self.library.forget_randomness()
        due = bool(wanted & lib.OPEN_CREATE and wanted & _NEEDS_DIRECTORY_SYNC)
        shared = self.shared.setdefault(number, SharedMemory())
        content = Content(descriptor, path)
        return SqliteFile(lifetime, content, lock, shared, directory_is_due=due), given

    def _descriptor(self, path: str, wanted: int) -> tuple[int, int]:
        flags = os.O_NOFOLLOW | os.O_CLOEXEC
        if not wanted & lib.OPEN_READWRITE:
            return self.lifetime.open(path, flags | os.O_RDONLY), wanted
        if wanted & lib.OPEN_CREATE:
            flags |= os.O_CREAT | (os.O_EXCL if wanted & lib.OPEN_EXCLUSIVE else 0)
        try:
            return self.lifetime.open(path, flags | os.O_RDWR, self._mode(path, wanted)), wanted
        except OSError as error:
            if error.errno == errno.EISDIR:
                raise
        given = wanted & ~(lib.OPEN_READWRITE | lib.OPEN_CREATE) | lib.OPEN_READONLY
        return self.lifetime.open(path, os.O_NOFOLLOW | os.O_CLOEXEC | os.O_RDONLY), given

    def _mode(self, path: str, wanted: int) -> int:
        """Return the mode of a new file; a journal and a WAL have that of their database."""
        if wanted & _BESIDE_DATABASE:
            try:
                database = self.lifetime.call(Process.stat, path.rpartition("-")[0])
            except OSError:
                return 0o644
            return database.st_mode & 0o777
        return 0o644

    # -- names -----------------------------------------------------------------------------

    def delete(self, path: str, *, sync: bool) -> int:
        if self.lifetime.poisoned:
            return lib.IO_DELETE
        try:
            self.lifetime.call(Process.unlink, path)
        except FileNotFoundError:
            return lib.IO_DELETE_NOENT
        except OSError:
            return lib.IO_DELETE
        if sync:
            try:
                sync_directory(self.lifetime, path)
            except OSError:
                return lib.IO_DIRECTORY_FSYNC
        return lib.OK

    def access(self, path: str, flags: int) -> bool:
        """Return whether a file may be read and written, or exists; an empty one does not."""
        call = self.lifetime.call
        if flags != lib.ACCESS_EXISTS:
            return call(Process.access, path, os.R_OK | os.W_OK)
        try:
            found = call(Process.stat, path)
        except OSError:
            return False
        return found.st_size > 0 or posixpath.isdir(path)

    def full_path(self, path: str) -> str | None:
        """Return the absolute path without links of a file of the disk; None for another one."""
        if self.lifetime.where(path)[0]:
            return posixpath.realpath(posixpath.join(self.lifetime.call(Process.getcwd), path))
        return None

    def randomness(self, amount: int) -> bytes:
        return self.lifetime.random_bytes(amount)


DatabaseFile = SqliteFile | MemoryFile

_VFS: Final[dict[int, SqliteVfs]] = {}
_FILES: Final[dict[int, DatabaseFile]] = {}
_file_numbers: Final = count(1)


def _vfs(pointer: int) -> SqliteVfs:
    return _VFS[Vfs.from_address(pointer).pAppData]


def _is_disk(vfs: SqliteVfs, path: str) -> bool:
    return vfs.lifetime.holds(path)


def _unix(vfs: SqliteVfs, method: str, *arguments: Any) -> int:
    """Call a method of SQLite's unix VFS."""
    code: int = getattr(vfs.library.unix, method)(vfs.library.unix_address, *arguments)
    return code


def _open(pointer: int, name: int | None, file: int, flags: int, given: Any) -> int:
    vfs = _vfs(pointer)
    path = os.fsdecode(string_at(name)) if name else ""
    if path and not _is_disk(vfs, path):
        return _unix(vfs, "xOpen", name, file, flags, given)
    struct = File.from_address(file)
    struct.pMethods = None
    opened: DatabaseFile
    try:
        opened, flags = vfs.open(path, flags) if path else (MemoryFile(), flags)
    except (OSError, SimulatedCrash, PowerOff, HarnessError):
        return lib.CANNOT_OPEN
    if given:
        given[0] = flags
    struct.number = number = next(_file_numbers)
    _FILES[number] = opened
    struct.pMethods = ctypes.pointer(_METHODS)
    return lib.OK


def _delete(pointer: int, name: bytes, sync: int) -> int:
    vfs, path = _vfs(pointer), os.fsdecode(name)
    if not _is_disk(vfs, path):
        return _unix(vfs, "xDelete", name, sync)
    try:
        return vfs.delete(path, sync=bool(sync & 1))
    except (SimulatedCrash, PowerOff, HarnessError):
        return lib.IO_DELETE


def _access(pointer: int, name: bytes, flags: int, answer: Any) -> int:
    vfs, path = _vfs(pointer), os.fsdecode(name)
    if not _is_disk(vfs, path):
        return _unix(vfs, "xAccess", name, flags, answer)
    try:
        answer[0] = vfs.access(path, flags)
    except (SimulatedCrash, PowerOff, HarnessError):
        answer[0] = 0
    return lib.OK


def _full_pathname(pointer: int, name: bytes, length: int, answer: int) -> int:
    vfs = _vfs(pointer)
    try:
        path = vfs.full_path(os.fsdecode(name))
    except (OSError, PowerOff):
        return lib.CANNOT_OPEN
    if path is None:
        return _unix(vfs, "xFullPathname", name, length, answer)
    encoded = os.fsencode(path) + b"\0"
    if len(encoded) > length:
        return lib.CANNOT_OPEN
    memmove(answer, encoded, len(encoded))
    return lib.OK


def _randomness(pointer: int, amount: int, answer: int) -> int:
    memmove(answer, _vfs(pointer).randomness(amount), amount)
    return amount


def _file(pointer: int) -> DatabaseFile:
    return _FILES[File.from_address(pointer).number]


def _close(pointer: int) -> int:
    number = File.from_address(pointer).number
    _FILES.pop(number).close()
    return lib.OK


def _file_size(pointer: int, answer: Any) -> int:
    try:
        answer[0] = _file(pointer).size()
    except (OSError, PowerOff):
        return lib.IO_ERROR
    return lib.OK


def _check_reserved(pointer: int, answer: Any) -> int:
    answer[0] = _file(pointer).is_reserved()
    return lib.OK


def _unlock(pointer: int, level: int) -> int:
    _file(pointer).unlock(level)
    return lib.OK


def _shm_map(pointer: int, region: int, size: int, extends: int, answer: Any) -> int:
    answer[0] = _file(pointer).map(region, size, extends=bool(extends)) or None
    return lib.OK


def _shm_unmap(pointer: int, _delete: int) -> int:
    _file(pointer).unmap()
    return lib.OK


_METHODS: Final = make_methods(
    {
        "xClose": _close,
        "xRead": lambda file, buffer, n, offset: _file(file).read(buffer, n, offset),
        "xWrite": lambda file, buffer, n, offset: _file(file).write(buffer, n, offset),
        "xTruncate": lambda file, size: _file(file).truncate(size),
        "xSync": lambda file, _flags: _file(file).sync(),
        "xFileSize": _file_size,
        "xLock": lambda file, level: _file(file).lock(level),
        "xUnlock": _unlock,
        "xCheckReservedLock": _check_reserved,
        "xFileControl": lambda file, operation, answer: _file(file).control(operation, answer),
        "xSectorSize": lambda file: _file(file).sector_bytes,
        "xDeviceCharacteristics": lambda file: _file(file).characteristics,
        "xShmMap": _shm_map,
        "xShmLock": lambda file, first, n, flags: _file(file).lock_memory(first, n, flags),
        "xShmBarrier": lambda _file: None,
        "xShmUnmap": _shm_unmap,
    }
)
_FUNCTIONS: Final[dict[str, Callable[..., int]]] = {
    "xOpen": _open,
    "xDelete": _delete,
    "xAccess": _access,
    "xFullPathname": _full_pathname,
    "xRandomness": _randomness,
}
_CALLBACKS: Final = {name: lib.VFS_METHODS[name](f) for name, f in _FUNCTIONS.items()}
