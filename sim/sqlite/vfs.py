# ruff: noqa: N802 - the methods carry SQLite's own names.
"""An apsw VFS over one process's process of the simulated disk.

Names go through the process, so they meet its rules and its faults; what SQLite does to a
file's content is in ``vfs_file.py``. Every xWrite, xSync, xTruncate and xDelete becomes
operations of the disk, the same that SQLite's unix VFS would make of it.

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

from sim.errors import PowerOff, SimulatedCrash
from sim.sqlite.device import device_of
from sim.sqlite.file_lock import file_lock
from sim.sqlite.lifetime import Lifetime
from sim.sqlite.randomness import seed_of, seed_sqlite
from sim.sqlite.real_path import real_path
from sim.sqlite.result_code import delete_code, failure
from sim.sqlite.vfs_file import SimulatedFile

if TYPE_CHECKING:
    from types import TracebackType

    from sim.disk.calls.process import Process

JULIAN_EPOCH_MS: Final = 210_866_760_000_000
TEMPORARY_DIRECTORIES: Final = ("/var/tmp", "/usr/tmp", "/tmp")  # noqa: S108 - simulated
_KIND: Final = 0x0FFF00
_NEEDS_DIRECTORY_SYNC: Final = frozenset(
    {
        apsw.SQLITE_OPEN_MAIN_JOURNAL,
        apsw.SQLITE_OPEN_SUPER_JOURNAL,
        apsw.SQLITE_OPEN_WAL,
    }
)
_BESIDE_DATABASE: Final = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL
_numbers: Final = count(1)


class SimulatedVFS(apsw.VFS):
    """Registered under ``name`` as long as it, or a connection through it, is alive.

    ``seed`` is mixed into everything random that SQLite writes (see ``randomness.py``).

    ``lifetime`` is the state that it shares with its files.
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
        """Keep a crash in a call that cannot report it off stderr; it is no mistake."""
        if isinstance(error, SimulatedCrash | PowerOff):
            return True
        return super().excepthook(kind, error, traceback)

    # -- files -------------------------------------------------------------------------

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open or create; falls back to reading only, as the unix VFS does."""
        self.lifetime.must_live()
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
            seed_sqlite(seed_of(self.disk, inode, self.seed))
        is_new_journal = bool(wanted & apsw.SQLITE_OPEN_CREATE) and kind in _NEEDS_DIRECTORY_SYNC
        file = SimulatedFile(
            self.lifetime, path, descriptor, inode, lock, device, is_new_journal, self
        )
        # apsw takes any object that has the methods.
        return cast("apsw.VFSFile", file)

    def _temporary_path(self) -> str:
        """Return a new name in the first directory of the unix VFS's list that exists."""
        for directory in TEMPORARY_DIRECTORIES:
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
        """Return a descriptor and the flags it was opened with."""
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
            self.lifetime.last_errno = error.errno or 0
            if self._is_unwritable_directory(path, wanted, error):
                raise failure(apsw.SQLITE_READONLY_DIRECTORY, error) from error
            if error.errno == errno.EISDIR:
                raise failure(apsw.SQLITE_CANTOPEN, error) from error
        given = wanted & ~(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        given |= apsw.SQLITE_OPEN_READONLY
        return self._open_to_read(path, given, os.O_NOFOLLOW | os.O_CLOEXEC)

    def _open_to_read(self, path: str, given: int, flags: int) -> tuple[int, int]:
        try:
            return self._retried_open(path, flags | os.O_RDONLY, 0), given
        except OSError as error:
            raise self.lifetime.failed(apsw.SQLITE_CANTOPEN, error) from error

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
        """A journal and a WAL get the permissions of their database."""
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
        """Unlink, and make that durable only when told."""
        if self.lifetime.is_off:
            return
        try:
            self.process.unlink(path)
        except OSError as error:
            raise self.lifetime.failed(delete_code(error), error) from error
        except SimulatedCrash:
            self.lifetime.is_dead = True
            raise
        if sync_directory:
            self.lifetime.change(apsw.SQLITE_IOERR_DIR_FSYNC, self.lifetime.sync_directory_of, path)

    def xAccess(self, path: str, flags: int) -> bool:
        """Say whether a file may be read and written, or exists; an empty one does not."""
        if flags != apsw.SQLITE_ACCESS_EXISTS:
            return not self.lifetime.is_off and self.process.access(path, os.R_OK | os.W_OK)
        inode = self.lifetime.inode_of(path)
        return inode is not None and (inode.size > 0 or not inode.is_file)

    def xFullPathname(self, path: str) -> str:
        """Return the absolute path without symbolic links; the last part may be missing."""
        try:
            return real_path(self.process, path)
        except OSError as error:
            raise self.lifetime.failed(apsw.SQLITE_CANTOPEN, error) from error

    # -- the world outside the disk ------------------------------------------------------

    def xRandomness(self, amount: int) -> bytes:
        """Return bytes that depend on the seed and the disk's clock only."""
        return seed_of(self.disk, None, self.seed)[:amount]

    def xCurrentTimeInt64(self) -> int:
        """Return the disk's clock as a Julian day number in milliseconds."""
        return JULIAN_EPOCH_MS + self.disk.now_ns() // 1_000_000

    def xCurrentTime(self) -> float:
        """Return the disk's clock as a Julian day number in days."""
        return self.xCurrentTimeInt64() / 86_400_000

    def xSleep(self, microseconds: int) -> int:
        """Sleep in no time: nobody else runs while SQLite waits for a lock."""
        return microseconds

    def xGetLastError(self) -> tuple[int, str]:
        """Return the errno of the last failure."""
        return self.lifetime.last_errno, os.strerror(self.lifetime.last_errno)
