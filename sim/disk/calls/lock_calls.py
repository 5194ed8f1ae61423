"""The advisory locks: ``fcntl.flock``, ``fcntl.lockf`` and ``os.lockf``."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import TYPE_CHECKING, Final

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.cache.locks import TO_THE_END, RecordLock
from sim.disk.calls.arguments import LONG_MAX, c_int, file_descriptor, off_t
from sim.disk.calls.descriptor import OpenFile
from sim.disk.calls.process_state import ProcessState
from sim.disk.os_error import os_error

if TYPE_CHECKING:
    from _typeshed import HasFileno

_OPERATIONS: Final = frozenset({fcntl.LOCK_SH, fcntl.LOCK_EX, fcntl.LOCK_UN})
_MANDATORY: Final = 32
"""``LOCK_MAND``, which Linux ignores since 5.16."""


class LockCalls(ProcessState):
    """Calls that lock against other processes on the same disk.

    They never wait: where Linux would wait, they raise ``UnsupportedOperation``.
    """

    __slots__ = ()

    def flock(self, fd: int | HasFileno, operation: int, /) -> None:
        """Take or release the lock of an open file description (``fcntl.flock``)."""
        fd, operation = file_descriptor(fd), c_int(operation)
        self._must_live()
        if operation & _MANDATORY:
            return
        if operation & ~fcntl.LOCK_NB not in _OPERATIONS:
            raise os_error(errno.EINVAL)
        file = self._file(fd)
        self.disk.locks.flock(file.number, file, operation)

    def record_lock(
        self,
        fd: int | HasFileno,
        cmd: int,
        length: int = 0,
        start: int = 0,
        whence: int = 0,
        /,
        *,
        of_description: bool = False,
    ) -> None:
        """Take or release a record lock of this process (``fcntl.lockf``).

        ``start`` and ``length`` count bytes. A ``length`` of 0 reaches to the end of the file,
        even if the file grows. With ``of_description`` the lock belongs to the open file
        description (``F_OFD_SETLK``).
        """
        fd, cmd = file_descriptor(fd), c_int(cmd)
        releases = cmd == fcntl.LOCK_UN
        if not (releases or cmd & (fcntl.LOCK_SH | fcntl.LOCK_EX)):
            raise ValueError("unrecognized lockf argument")
        length, start, whence = off_t(length), off_t(start), c_int(whence)
        file = self._file(fd)
        owner = file if of_description else self
        lock = self._record(file, owner, not cmd & fcntl.LOCK_SH, length, start, whence)
        if releases:
            self.disk.locks.unlock_record(file.number, lock)
            return
        granted = file.flags.writable if lock.exclusive else file.flags.readable
        if not granted:
            raise os_error(errno.EBADF)
        waiting = not cmd & fcntl.LOCK_NB
        self.disk.locks.lock_record(file.number, lock, waiting=waiting)

    def conflicting_lock(
        self,
        fd: int,
        cmd: int,
        length: int,
        start: int,
        whence: int,
        /,
        *,
        of_description: bool = False,
    ) -> RecordLock | None:
        """Return a lock that keeps ``record_lock`` with these arguments from succeeding."""
        file = self._file(fd)
        owner = file if of_description else self
        lock = self._record(file, owner, not cmd & fcntl.LOCK_SH, length, start, whence)
        return self.disk.locks.record_conflict(file.number, lock)

    def lockf(self, fd: int, command: int, length: int, /) -> None:
        """Take, test or release an exclusive record lock from the offset on (``os.lockf``).

        ``F_TEST`` fails with EACCES if another process has an exclusive lock: glibc asks for a
        shared one (``io/lockf.c``). ``fcntl.lockf`` is another call with other commands; it is
        ``record_lock`` here.
        """
        fd, command, length = c_int(fd), c_int(command), off_t(length)
        self._file(fd)
        match command:
            case os.F_ULOCK:
                self.record_lock(fd, fcntl.LOCK_UN, length, 0, os.SEEK_CUR)
            case os.F_LOCK:
                self.record_lock(fd, fcntl.LOCK_EX, length, 0, os.SEEK_CUR)
            case os.F_TLOCK:
                self.record_lock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, length, 0, os.SEEK_CUR)
            case os.F_TEST:
                file = self._file(fd)
                lock = self._record(
                    file, self, exclusive=False, length=length, start=0, whence=os.SEEK_CUR
                )
                if self.disk.locks.is_record_locked(file.number, lock):
                    raise os_error(errno.EACCES)
            case _:
                raise os_error(errno.EINVAL)

    def _record(
        self, file: OpenFile, owner: object, exclusive: bool, length: int, start: int, whence: int
    ) -> RecordLock:
        """Return the lock on a range, with the errors of ``flock64_to_posix_lock`` of Linux."""
        match whence:
            case os.SEEK_SET:
                pass
            case os.SEEK_CUR:
                start += file.offset
            case os.SEEK_END:
                start += BLOCK_BYTES if file.is_directory else self._cache[file.number].size
            case _:
                raise os_error(errno.EINVAL)
        if start > LONG_MAX:
            raise os_error(errno.EOVERFLOW)
        first, end = start, start + length
        if length < 0:
            first, end = end, start
        if first < 0:
            raise os_error(errno.EINVAL)
        if end - 1 > LONG_MAX:
            raise os_error(errno.EOVERFLOW)
        return RecordLock(owner, exclusive, first, end if length else TO_THE_END)
