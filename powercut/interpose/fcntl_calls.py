"""The functions of ``fcntl`` on a descriptor of the disk."""

from __future__ import annotations

import errno
import fcntl as real_fcntl
import os
from operator import index
from struct import Struct
from typing import Any, Final

from powercut.interpose.lifetime import Lifetime
from sim.disk.cache.locks import TO_THE_END, RecordLock
from sim.disk.calls.process import Process
from sim.disk.os_error import os_error
from sim.errors import UnsupportedOperation

_FLOCK: Final = Struct("hhqqi4x")
"""``struct flock`` of 64-bit Linux: type, whence, start, length, pid."""
_LEAST_BYTES: Final = 24
"""Without the pid, which only the locks of a description need."""
_OFD_GETLK, _OFD_SETLK, _OFD_SETLKW = 36, 37, 38
_OF_DESCRIPTION: Final = frozenset({_OFD_GETLK, _OFD_SETLK, _OFD_SETLKW})
_GETS_LOCK: Final = frozenset({real_fcntl.F_GETLK, _OFD_GETLK})
_SETS_LOCK: Final = frozenset({real_fcntl.F_SETLK, _OFD_SETLK})
_WAITS_FOR_LOCK: Final = frozenset({real_fcntl.F_SETLKW, _OFD_SETLKW})
_CLONES: Final = frozenset({0x40049409, 0x4020940D})
"""``FICLONE`` and ``FICLONERANGE``, which ``fcntl`` has from CPython 3.13 on."""
_KINDS: Final = {
    real_fcntl.F_RDLCK: real_fcntl.LOCK_SH,
    real_fcntl.F_WRLCK: real_fcntl.LOCK_EX,
    real_fcntl.F_UNLCK: real_fcntl.LOCK_UN,
}


def flock(lifetime: Lifetime, fd: Any, operation: int, /) -> None:
    """Take or release the lock of an open file description; wait for another thread's."""
    if operation & real_fcntl.LOCK_NB or operation == real_fcntl.LOCK_UN:
        lifetime.call(Process.flock, fd, operation)
    else:
        lifetime.waiting_call(Process.flock, fd, operation | real_fcntl.LOCK_NB)


def lockf(
    lifetime: Lifetime, fd: Any, cmd: int, length: int = 0, start: int = 0, whence: int = 0, /
) -> None:
    """Take or release a record lock of the process; wait for a lock of a description."""
    if cmd & real_fcntl.LOCK_NB or cmd == real_fcntl.LOCK_UN:
        lifetime.call(Process.record_lock, fd, cmd, length, start, whence)
    else:
        cmd |= real_fcntl.LOCK_NB
        lifetime.waiting_call(Process.record_lock, fd, cmd, length, start, whence)


def fcntl(lifetime: Lifetime, fd: Any, cmd: int, arg: Any = 0, /) -> int | bytes:
    """Carry out one of the commands that concern descriptors, flags and record locks.

    Raises ``UnsupportedOperation`` with the number of any other command.
    """
    number = fd if isinstance(fd, int) else fd.fileno()
    match cmd:
        case real_fcntl.F_GETFD:
            inheritable = lifetime.call(Process.get_inheritable, number)
            return 0 if inheritable else real_fcntl.FD_CLOEXEC
        case real_fcntl.F_SETFD:
            lifetime.call(Process.set_inheritable, number, not arg & real_fcntl.FD_CLOEXEC)
            return 0
        case real_fcntl.F_GETFL:
            return lifetime.call(Process.status_flags, number)
        case real_fcntl.F_SETFL:
            lifetime.call(Process.set_status_flags, number, arg)
            return 0
        case real_fcntl.F_DUPFD | real_fcntl.F_DUPFD_CLOEXEC:
            copy = lifetime.call(Process.dup_from, number, arg)
            lifetime.call(Process.set_inheritable, copy, cmd == real_fcntl.F_DUPFD)
            return copy
    if cmd in _GETS_LOCK | _SETS_LOCK | _WAITS_FOR_LOCK:
        return _record_lock(lifetime, number, cmd, arg)
    return lifetime.call(_refuse_command, cmd)


def ioctl(lifetime: Lifetime, fd: Any, request: int, *_arguments: Any) -> int:
    """Raise the error of a file that has no terminal and shares no blocks with another one."""
    lifetime.call(Process.fstat, fd if isinstance(fd, int) else fd.fileno())
    raise os_error(errno.EOPNOTSUPP if request in _CLONES else errno.ENOTTY)


def _record_lock(lifetime: Lifetime, fd: int, command: int, argument: Any) -> bytes:
    """Get or set a record lock; return the ``struct flock`` that the kernel leaves."""
    content = _flock_bytes(argument)
    lifetime.call(Process.fstat, fd)
    if content is None:
        raise os_error(errno.EFAULT)
    kind, whence, start, length, pid = _FLOCK.unpack_from(content.ljust(_FLOCK.size, b"\0"))
    is_of_description = command in _OF_DESCRIPTION
    is_query = command in _GETS_LOCK
    is_wrong = kind not in _KINDS or (is_query and kind == real_fcntl.F_UNLCK)
    if is_wrong or len(content) < _LEAST_BYTES or (is_of_description and pid):
        raise os_error(errno.EINVAL)
    operation, span = _KINDS[kind], (length, start, whence)
    if is_query:
        found = lifetime.call(
            Process.conflicting_lock, fd, operation, *span, of_description=is_of_description
        )
        free = real_fcntl.F_UNLCK, whence, start, length, pid
        left = _FLOCK.pack(*(free if found is None else _shown(found)))
        return left[: len(content)] + content[_FLOCK.size :]
    call = lifetime.waiting_call if command in _WAITS_FOR_LOCK else lifetime.call
    if kind != real_fcntl.F_UNLCK:
        operation |= real_fcntl.LOCK_NB
    call(Process.record_lock, fd, operation, *span, of_description=is_of_description)
    return content


def _flock_bytes(argument: Any) -> bytes | None:
    """Return the bytes of an argument, None for a number, which is not the address of any."""
    if isinstance(argument, str):
        argument = argument.encode()
    if isinstance(argument, bytes | bytearray | memoryview):
        return bytes(argument)
    index(argument)
    return None


def _shown(lock: RecordLock) -> tuple[int, int, int, int, int]:
    """Return a lock as the kernel shows it: a description has the pid -1."""
    kind = real_fcntl.F_WRLCK if lock.exclusive else real_fcntl.F_RDLCK
    length = 0 if lock.end == TO_THE_END else lock.end - lock.start
    pid = os.getpid() if isinstance(lock.owner, Process) else -1
    return kind, os.SEEK_SET, lock.start, length, pid


def _refuse_command(_process: Process, command: int) -> int:
    raise UnsupportedOperation(f"fcntl: command {command} is not modelled by the simulated disk")
