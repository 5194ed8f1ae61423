# ruff: noqa: N802 - the methods carry SQLite's own names.
"""One open file of SQLite on the simulated disk, over the descriptor that opened it.

It behaves as SQLite's unix VFS (``os_unix.c``): it writes until all bytes are written,
retries EINTR, fills a short read with zeros, always uses fdatasync, and at the first sync of
a journal or WAL that it may have created it also syncs the directory.

Data goes to the inode directly and not through the descriptor, because SQLite reads and
writes at offsets only. Chunk sizes and size hints are ignored, there is no memory mapping,
and there is no shared memory: WAL needs exclusive locking mode.

After the crash of its process a file answers every call and changes nothing: SQLite cleans
up after a failed operation, and one crash must not cause a second error.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from ctypes import c_int
from typing import TYPE_CHECKING, Final

import apsw

from sim.disk.os_error import os_error
from sim.errors import PowerOff, SimulatedCrash, UnsupportedOperation
from sim.sqlite.file_lock import EXCLUSIVE, NONE, SHARED, FileLock

if TYPE_CHECKING:
    from collections.abc import Callable

    from sim.disk.cache.inode import Inode
    from sim.sqlite.device import Device
    from sim.sqlite.lifetime import Lifetime

_DAMAGED: Final = frozenset({errno.EIO, errno.ERANGE, errno.ENXIO})
_WAL_FORMAT: Final = b"\2\2"
_WAL_NEEDS_EXCLUSIVE: Final = (
    "WAL needs shared memory, which the simulated disk does not have: "
    "run PRAGMA locking_mode=EXCLUSIVE before the first access to the database"
)


class SimulatedFile:
    """One ``sqlite3_file``, as apsw calls it.

    ``lock`` is None for all files but a main database. ``is_new_journal`` means that the
    directory entry may not be durable yet. ``vfs`` is only referenced: the garbage collector
    does not know SQLite's reference to a file, and would otherwise clear the VFS of a lost
    connection before the connection is closed.
    """

    __slots__ = (
        "_descriptor",
        "_device",
        "_directory_is_due",
        "_disk",
        "_inode",
        "_lifetime",
        "_lock",
        "_path",
        "_persist_wal",
        "_process",
        "_vfs",
        "level",
    )  # fmt: skip

    def __init__(
        self,
        lifetime: Lifetime,
        path: str,
        descriptor: int,
        inode: Inode,
        lock: FileLock | None,
        device: Device,
        is_new_journal: bool,
        vfs: object,
    ) -> None:
        self._lifetime = lifetime
        self._disk = lifetime.disk
        self._process = lifetime.process
        self._path = path
        self._descriptor = descriptor
        self._inode = inode
        self._lock = lock
        self.level = NONE
        self._device = device
        self._directory_is_due = is_new_journal
        self._persist_wal = False
        self._vfs = vfs

    @property
    def is_off(self) -> bool:
        """Whether the process that opened it is dead."""
        return self._lifetime.is_off

    # -- data --------------------------------------------------------------------------

    def xRead(self, amount: int, offset: int) -> bytes:
        """Return up to ``amount`` bytes; fewer mean the end of the file."""
        interposer = self._disk.interposer
        if interposer is None or self._lifetime.is_off:
            content = self._inode.read(offset, amount)
            if len(content) < amount and self._inode.is_directory:
                is_directory = os_error(errno.EISDIR, self._path)
                raise self._lifetime.failure(_read_code(is_directory), is_directory)
            return content
        return self._read_through(interposer.reading, amount, offset)

    def _read_through(
        self, reading: Callable[[str, int, int, bytes], bytes], amount: int, offset: int
    ) -> bytes:
        content = b""
        while len(content) < amount:
            position = offset + len(content)
            stored = self._inode.read(position, amount - len(content))
            try:
                piece = reading(self._path, self._inode.number, position, stored)
            except OSError as error:
                if error.errno == errno.EINTR:
                    continue
                raise self._lifetime.failure(_read_code(error), error) from error
            if not piece:
                break
            content += piece
        return content

    def xWrite(self, data: bytes, offset: int) -> None:
        """Write all of ``data``, by as many operations as short writes require."""
        lifetime = self._lifetime
        if lifetime.is_off:
            return
        content = bytes(data)
        while content:
            try:
                written = self._disk.write(self._inode, offset, content, self._path)
            except OSError as error:
                if error.errno == errno.EINTR:
                    continue
                raise lifetime.failure(_write_code(error), error) from error
            except SimulatedCrash:
                lifetime.is_dead = True
                raise
            if not written:
                full = os_error(errno.ENOSPC, self._path)
                raise lifetime.failure(apsw.SQLITE_FULL, full)
            content = content[written:]
            offset += written

    def xTruncate(self, size: int) -> None:
        """Set the size in bytes."""
        self._lifetime.change(apsw.SQLITE_IOERR_TRUNCATE, self._truncate, size)

    def _truncate(self, size: int) -> None:
        while True:
            try:
                self._process.ftruncate(self._descriptor, size)
            except InterruptedError:
                continue
            return

    def xSync(self, _flags: int) -> None:
        """Call fdatasync, whatever the flags, and then sync the directory if that is due."""
        lifetime = self._lifetime
        lifetime.change(apsw.SQLITE_IOERR_FSYNC, self._process.fdatasync, self._descriptor)
        if self._directory_is_due:
            self._directory_is_due = False
            with suppress(apsw.IOError):
                lifetime.change(apsw.SQLITE_IOERR_DIR_FSYNC, lifetime.sync_directory_of, self._path)

    def xFileSize(self) -> int:
        """Return the size in bytes; 1 counts as 0, as in the unix VFS."""
        size = self._inode.size
        return size if size != 1 else 0

    def xClose(self) -> None:
        """Release lock and descriptor; failures are ignored, as in the unix VFS."""
        self.xUnlock(NONE)
        with suppress(OSError, PowerOff):
            self._process.close(self._descriptor)

    # -- locks -------------------------------------------------------------------------

    def xLock(self, level: int) -> None:
        """Raise the lock; ``BusyError`` if another connection is in the way."""
        lock = self._lock
        if lock is None:
            return
        if self.is_off:
            self._refuse_lock(level)
        if not lock.acquire(self, level):
            raise apsw.BusyError("another connection holds a lock")
        if level == SHARED and not self._lifetime.is_exclusive and self._is_wal():
            lock.release(self, NONE)
            raise UnsupportedOperation(_WAL_NEEDS_EXCLUSIVE)

    @staticmethod
    def _refuse_lock(level: int) -> None:
        """Prevent a dead connection from starting anything, and its close from a checkpoint.

        SQLite requests EXCLUSIVE when it closes a WAL, and goes on without it when BUSY.
        """
        if level >= EXCLUSIVE:
            raise apsw.BusyError("the process that held this database is dead")
        raise PowerOff("the process that made this call is dead")

    def _is_wal(self) -> bool:
        return self._inode.read(18, 2) == _WAL_FORMAT

    def xUnlock(self, level: int) -> None:
        """Lower the lock to SHARED or to none."""
        if self._lock is not None:
            self._lock.release(self, level)

    def xCheckReservedLock(self) -> bool:
        """Return whether any connection is about to write."""
        return self._lock is not None and self._lock.level() > SHARED

    # -- properties of the file ----------------------------------------------------------

    def xSectorSize(self) -> int:
        """Return the device's sector size in bytes."""
        return self._device.sector_bytes

    def xDeviceCharacteristics(self) -> int:
        """Return the flags of the device (``device.py``)."""
        return self._device.characteristics

    def xFileControl(self, operation: int, pointer: int) -> bool:
        """Handle the operations that the unix VFS handles; return False for the others."""
        match operation:
            case apsw.SQLITE_FCNTL_PRAGMA:
                self._follow_pragma(apsw.VFSFcntlPragma(pointer))
                return False
            case apsw.SQLITE_FCNTL_HAS_MOVED:
                c_int.from_address(pointer).value = self._has_moved()
            case apsw.SQLITE_FCNTL_LOCKSTATE:
                c_int.from_address(pointer).value = self.level
            case apsw.SQLITE_FCNTL_LAST_ERRNO:
                c_int.from_address(pointer).value = self._lifetime.last_errno
            case apsw.SQLITE_FCNTL_PERSIST_WAL:
                self._persist_wal = _switched(pointer, self._persist_wal)
            case apsw.SQLITE_FCNTL_POWERSAFE_OVERWRITE:
                claimed = _switched(pointer, self._device.has_powersafe_overwrite)
                self._device = self._device.with_powersafe_overwrite(claimed=claimed)
            case _:
                return False
        return True

    def _has_moved(self) -> bool:
        return self._lock is not None and self._lifetime.inode_of(self._path) is not self._inode

    def _follow_pragma(self, pragma: apsw.VFSFcntlPragma) -> None:
        """Follow the locking mode, and refuse WAL outside of exclusive locking mode."""
        name, value = pragma.name.lower(), (pragma.value or "").lower()
        if name == "locking_mode" and value in {"exclusive", "normal"}:
            self._lifetime.is_exclusive = value == "exclusive"
        elif name == "journal_mode" and value == "wal" and not self._lifetime.is_exclusive:
            raise UnsupportedOperation(_WAL_NEEDS_EXCLUSIVE)


def _switched(pointer: int, is_on: bool) -> bool:
    """Set a switch and return its state; a negative number only queries it."""
    asked = c_int.from_address(pointer)
    if asked.value < 0:
        asked.value = is_on
        return is_on
    return asked.value != 0


def _read_code(cause: OSError) -> int:
    """Return the result code of a failed read; an unreadable sector is corruption to SQLite."""
    damaged = cause.errno in _DAMAGED
    return apsw.SQLITE_IOERR_CORRUPTFS if damaged else apsw.SQLITE_IOERR_READ


def _write_code(cause: OSError) -> int:
    return apsw.SQLITE_FULL if cause.errno == errno.ENOSPC else apsw.SQLITE_IOERR_WRITE
