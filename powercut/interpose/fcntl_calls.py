"""The functions of ``fcntl`` on a descriptor of the disk."""

from __future__ import annotations

import errno
import fcntl as real_fcntl
import struct
from typing import Any, Final

from powercut.interpose.lifetime import Lifetime
from sim.disk.calls.process import Process
from sim.disk.os_error import os_error
from sim.errors import UnsupportedOperation

_FLOCK: Final = struct.Struct("hhqq")
"""``struct flock`` of 64-bit Linux up to the pid: type, whence, start, length."""
_SETS_LOCK: Final = frozenset({real_fcntl.F_SETLK, real_fcntl.F_SETLKW})
_CLONES: Final = frozenset({0x40049409, 0x4020940D})
"""``FICLONE`` and ``FICLONERANGE``, which ``fcntl`` has from CPython 3.13 on."""
_WAITS: Final = real_fcntl.LOCK_NB
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
    """Take or release a record lock; the process owns it, so no thread waits for another."""
    lifetime.call(Process.record_lock, fd, cmd, length, start, whence)


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
    if cmd in _SETS_LOCK:
        return _set_lock(lifetime, number, bytes(arg), waits=cmd == real_fcntl.F_SETLKW)
    return lifetime.call(_refuse_command, cmd)


def ioctl(lifetime: Lifetime, fd: Any, request: int, *_arguments: Any) -> int:
    """Raise the error of a file that has no terminal and shares no blocks with another one."""
    lifetime.call(Process.fstat, fd if isinstance(fd, int) else fd.fileno())
    raise os_error(errno.EOPNOTSUPP if request in _CLONES else errno.ENOTTY)


def _set_lock(lifetime: Lifetime, fd: int, lock: bytes, *, waits: bool) -> bytes:
    kind, whence, start, length = _FLOCK.unpack_from(lock)
    if kind not in _KINDS:
        raise os_error(errno.EINVAL)
    operation = _KINDS[kind]
    if operation != real_fcntl.LOCK_UN and not waits:
        operation |= _WAITS
    lifetime.call(Process.record_lock, fd, operation, length, start, whence)
    return lock


def _refuse_command(_process: Process, command: int) -> int:
    raise UnsupportedOperation(f"fcntl: command {command} is not modelled by the simulated disk")
