# ruff: noqa: N802 - the methods carry SQLite's own names.
"""An apsw VFS over one process on the simulated disk.

Calls on names go through the process, so they meet its rules and its faults; calls on the
content of a file are in ``vfs_file.py``. Every xWrite, xSync, xTruncate and xDelete becomes
the same operations of the disk that SQLite's unix VFS would make.

SQLite draws the nonces of journals, the salts of WALs and random() from one generator of the
whole process, which it would seed from /dev/urandom; it is seeded anew whenever a database is
opened, so that two runs write the same bytes. Two lifetimes of one disk must not repeat each
other's nonces, or a stale journal record could pass for a fresh one, which in reality it does
once in 2^32. The seed therefore depends on the database's first page, which every commit
changes, and on the clock.

Left out: shared memory (WAL works in exclusive locking mode), memory mapping, loading of
extensions, and the fchown by which a superuser's SQLite gives a journal to the owner of
the database.
"""

from __future__ import annotations

import errno
import os
import posixpath
from itertools import count
from typing import TYPE_CHECKING, Final, cast

import apsw
from xxhash import xxh3_128_digest

from sim.errors import PowerOff, SimulatedCrash
from sim.sqlite.device import device_of
from sim.sqlite.file_lock import file_lock
from sim.sqlite.lifetime import Lifetime
from sim.sqlite.vfs_file import SimulatedFile

if TYPE_CHECKING:
    from types import TracebackType

    from sim.disk.cache.inode import Inode
    from sim.disk.calls.process import Process
    from sim.disk.disk import Disk

_JULIAN_EPOCH_MS: Final = 210_866_760_000_000
_TEMPORARY_DIRECTORIES: Final = ("/var/tmp", "/usr/tmp", "/tmp")  # noqa: S108 - simulated
_KIND: Final = 0x0FFF00
_NEEDS_DIRECTORY_SYNC: Final = frozenset(
    {
        apsw.SQLITE_OPEN_MAIN_JOURNAL,
        apsw.SQLITE_OPEN_SUPER_JOURNAL,
        apsw.SQLITE_OPEN_WAL,
    }
)
_BESIDE_DATABASE: Final = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL
_SEED_BYTES: Final = 44
_numbers: Final = count(1)


class SimulatedVFS(apsw.VFS):
    """Registered under ``name`` as long as it, or a connection through it, is alive.

    ``seed`` is mixed into all random numbers that SQLite writes. ``lifetime`` is the state
    that the VFS shares with its files.
    """

    def __init__(self, process: Process, seed: int = 0) -> None:
        self.name = f"powercut-{next(_numbers)}"
        self.process = process
        self.disk = process.disk
        self.lifetime = Lifetime(process)
        self.seed = seed
        self._device = device_of(self.disk.model)
        super().__init__(self.name, None)

    def excepthook(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Print nothing for a crash in a call that cannot report it; it is not an error of ours."""
        if isinstance(error, SimulatedCrash | PowerOff):
            return True
        return super().excepthook(kind, error, traceback)

    # -- files -------------------------------------------------------------------------

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open or create a file; fall back to reading only, as the unix VFS does."""
        self.lifetime.check_alive()
        wanted = flags[0]
        device = self._device
        if name is None:
            path = self._temporary_path()
        elif isinstance(name, str):
            path = name
        else:
            path = name.filename()
            if not name.uri_boolean("psow", True):
                device = device.with_powersafe_overwrite(claimed=False)
        descriptor, flags[1] = self._open(path, wanted)
        opened = self.lifetime.inode_of(path)
        assert opened is not None, path
        inode = self.disk.inode(opened.number)
        if wanted & apsw.SQLITE_OPEN_DELETEONCLOSE:
            self.lifetime.change(apsw.SQLITE_IOERR_DELETE, self.process.unlink, path)
        kind = wanted & _KIND
        lock = None
        if kind == apsw.SQLITE_OPEN_MAIN_DB:
            lock = file_lock(self.disk, inode.number)
            _seed_sqlite(_seed_of(self.disk, inode, self.seed))
        is_new_journal = bool(wanted & apsw.SQLITE_OPEN_CREATE) and kind in _NEEDS_DIRECTORY_SYNC
        file = SimulatedFile(
            self.lifetime, path, descriptor, inode, lock, device, is_new_journal, self
        )
        # apsw takes any object that has the methods.
        return cast("apsw.VFSFile", file)

    def _temporary_path(self) -> str:
        """Return a new name in the first directory of the unix VFS's list that exists."""
        for directory in _TEMPORARY_DIRECTORIES:
            inode = self.lifetime.inode_of(directory)
            if inode is not None and inode.is_directory:
                break
        else:
            directory = self.process.getcwd()
        number = self.disk.operations
        while True:
            path = posixpath.join(directory, f"etilqs_{number}")
            if self.lifetime.inode_of(path) is None:
                return path
            number += 1

    def _open(self, path: str, wanted: int) -> tuple[int, int]:
        """Return a descriptor, and the ``SQLITE_OPEN_…`` flags that it was opened with."""
        flags = os.O_NOFOLLOW | os.O_CLOEXEC
        if wanted & apsw.SQLITE_OPEN_READONLY:
            return self._open_to_read(path, wanted, flags)
        flags |= os.O_RDWR
        mode = 0o644
        if wanted & apsw.SQLITE_OPEN_CREATE:
            flags |= os.O_CREAT
            mode = self._mode_of_new(path, wanted)
            if wanted & apsw.SQLITE_OPEN_EXCLUSIVE:
                flags |= os.O_EXCL
        try:
            return self._retried_open(path, flags, mode), wanted
        except OSError as error:
            if self._is_unwritable_directory(path, wanted, error):
                raise self.lifetime.failure(apsw.SQLITE_READONLY_DIRECTORY, error) from error
            if error.errno == errno.EISDIR:
                raise self.lifetime.failure(apsw.SQLITE_CANTOPEN, error) from error
        given = wanted & ~(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        given |= apsw.SQLITE_OPEN_READONLY
        return self._open_to_read(path, given, os.O_NOFOLLOW | os.O_CLOEXEC)

    def _open_to_read(self, path: str, given: int, flags: int) -> tuple[int, int]:
        try:
            return self._retried_open(path, flags | os.O_RDONLY, 0), given
        except OSError as error:
            raise self.lifetime.failure(apsw.SQLITE_CANTOPEN, error) from error

    def _retried_open(self, path: str, flags: int, mode: int) -> int:
        while True:
            try:
                return self.process.open(path, flags, mode)
            except OSError as error:
                if error.errno != errno.EINTR:
                    raise
            except SimulatedCrash:
                self.lifetime.is_dead = True
                raise

    def _mode_of_new(self, path: str, wanted: int) -> int:
        """Return the mode of a new file; a journal and a WAL have that of their database."""
        if wanted & apsw.SQLITE_OPEN_DELETEONCLOSE:
            return 0o600
        if wanted & _BESIDE_DATABASE:
            database = self.lifetime.inode_of(path.rpartition("-")[0])
            if database is not None:
                return database.mode & 0o777
        return 0o644

    def _is_unwritable_directory(self, path: str, wanted: int, error: OSError) -> bool:
        return (
            error.errno == errno.EACCES
            and bool(wanted & apsw.SQLITE_OPEN_CREATE)
            and wanted & _KIND in _NEEDS_DIRECTORY_SYNC
            and self.lifetime.inode_of(path) is None
        )

    # -- names -------------------------------------------------------------------------

    def xDelete(self, path: str, sync_directory: bool) -> None:
        """Unlink a file, and make that durable if requested."""
        if self.lifetime.is_off:
            return
        try:
            self.process.unlink(path)
        except OSError as error:
            gone = error.errno == errno.ENOENT
            code = apsw.SQLITE_IOERR_DELETE_NOENT if gone else apsw.SQLITE_IOERR_DELETE
            raise self.lifetime.failure(code, error) from error
        except SimulatedCrash:
            self.lifetime.is_dead = True
            raise
        if sync_directory:
            self.lifetime.change(apsw.SQLITE_IOERR_DIR_FSYNC, self.lifetime.sync_directory_of, path)

    def xAccess(self, path: str, flags: int) -> bool:
        """Return whether a file may be read and written, or exists; an empty one does not."""
        if flags != apsw.SQLITE_ACCESS_EXISTS:
            return not self.lifetime.is_off and self.process.access(path, os.R_OK | os.W_OK)
        inode = self.lifetime.inode_of(path)
        return inode is not None and (inode.size > 0 or not inode.is_file)

    def xFullPathname(self, path: str) -> str:
        """Return the absolute path without symbolic links; its end may not exist."""
        try:
            return self.lifetime.real_path(path)
        except OSError as error:
            raise self.lifetime.failure(apsw.SQLITE_CANTOPEN, error) from error

    # -- randomness and time -------------------------------------------------------------

    def xRandomness(self, amount: int) -> bytes:
        """Return bytes that depend only on the seed and the state of the disk."""
        return _seed_of(self.disk, None, self.seed)[:amount]

    def xCurrentTimeInt64(self) -> int:
        """Return the disk's clock as a Julian day number in milliseconds."""
        return _JULIAN_EPOCH_MS + self.disk.now_ns() // 1_000_000

    def xCurrentTime(self) -> float:
        """Return the disk's clock as a Julian day number in days."""
        return self.xCurrentTimeInt64() / 86_400_000

    def xSleep(self, microseconds: int) -> int:
        """Return at once: no other process runs while SQLite waits for a lock."""
        return microseconds

    def xGetLastError(self) -> tuple[int, str]:
        """Return the errno of the last failure."""
        return self.lifetime.last_errno, os.strerror(self.lifetime.last_errno)


class _SeedVFS(apsw.VFS):
    """The default VFS while SQLite seeds its generator."""

    def __init__(self, seed: bytes) -> None:
        super().__init__("powercut-seed", None, True)
        self.seed = seed

    def xRandomness(self, amount: int) -> bytes:
        return self.seed[:amount]


def _seed_of(disk: Disk, database: Inode | None, seed: int) -> bytes:
    page = database.first_block() if database is not None else b""
    state = xxh3_128_digest(b"%d:%d:%d:" % (seed, disk.now_ns(), disk.operations) + page)
    return (state * 3)[:_SEED_BYTES]


def _seed_sqlite(seed: bytes) -> None:
    assert len(seed) == _SEED_BYTES
    source = _SeedVFS(seed)
    apsw.randomness(0)
    apsw.randomness(1)
    source.unregister()
