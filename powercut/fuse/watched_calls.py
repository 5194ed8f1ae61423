"""System calls of a program that FUSE does not pass on: ``sync``, ``syncfs``, ``sync_file_range``.

A filter of seccomp stops a process at such a call until its watcher has answered (Linux 5.5), so
the disk can carry out the barrier at exactly this moment. The filter is inherited by every process
that the program starts.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
from enum import Enum
from struct import Struct
from typing import Final, NamedTuple

_SET_NO_NEW_PRIVS: Final = 38
_SET_FILTER: Final = 1
_NEW_LISTENER: Final = 1 << 3
_WRITTEN: Final = 2 | 4
"""``SYNC_FILE_RANGE_WRITE`` and ``SYNC_FILE_RANGE_WAIT_AFTER``."""
_RECEIVE: Final = 0xC0502100
_SEND: Final = 0xC0182101
_CONTINUE: Final = 1

# Instructions of BPF: code, jump if true, jump if false, operand.
_INSTRUCTION: Final = Struct("=HBBI")
_LOAD: Final = 0x20
_JUMP_IF_EQUAL: Final = 0x15
_RETURN: Final = 0x06
_ALLOW: Final = 0x7FFF0000
_NOTIFY: Final = 0x7FC00000
_NUMBER_AT: Final = 0
_ARCHITECTURE_AT: Final = 4

_NOTIFICATION: Final = Struct("=QII iIQ6Q")
_ANSWER: Final = Struct("=QqiI")


class CallKind(Enum):
    """The calls that are watched."""

    SYNC = "sync"
    SYNCFS = "syncfs"
    SYNC_FILE_RANGE = "sync_file_range"


class _Machine(NamedTuple):
    """The numbers of an architecture: of itself, of seccomp(2), and of the watched calls."""

    architecture: int
    seccomp: int
    calls: dict[CallKind, int]


_MACHINES: Final = {
    "x86_64": _Machine(
        0xC000003E,
        317,
        {CallKind.SYNC: 162, CallKind.SYNCFS: 306, CallKind.SYNC_FILE_RANGE: 277},
    ),
    "aarch64": _Machine(
        0xC00000B7,
        277,
        {CallKind.SYNC: 81, CallKind.SYNCFS: 267, CallKind.SYNC_FILE_RANGE: 84},
    ),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


class WatchedCall(NamedTuple):
    """A process waits in a call; ``descriptor`` is its first argument, ``flags`` the fourth."""

    identifier: int
    process: int
    kind: CallKind
    descriptor: int
    flags: int

    @property
    def is_barrier(self) -> bool:
        """Whether the call waits until data is written; some only start to write a range."""
        return self.kind is not CallKind.SYNC_FILE_RANGE or self.flags & _WRITTEN == _WRITTEN

    def path(self) -> str:
        """Return the path of the open file ``descriptor``; empty if the process has ended."""
        try:
            return os.readlink(f"/proc/{self.process}/fd/{self.descriptor}")
        except OSError:
            return ""


def watch_this_process() -> int:
    """Install the filter in this process; return the descriptor from which calls are received.

    Raises ``OSError``: where the kernel is too old, or has a watcher of this process already.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(errno.ENOSYS, f"not known on {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    code = _filter(machine)
    program = _Program(len(code) // _INSTRUCTION.size, code)
    for privileged in (True, False):
        if not privileged:
            libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        listener: int = libc.syscall(
            ctypes.c_long(machine.seccomp), _SET_FILTER, _NEW_LISTENER, ctypes.byref(program)
        )
        if listener >= 0:
            return listener
        if ctypes.get_errno() != errno.EACCES:
            break
    code_of_error = ctypes.get_errno()
    raise OSError(code_of_error, os.strerror(code_of_error))


def receive(listener: int) -> WatchedCall | None:
    """Return the call that waits; None if its process was killed meanwhile."""
    buffer = bytearray(_NOTIFICATION.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.EINTR}:
            return None
        raise
    identifier, process, _, number, _, _, *arguments = _NOTIFICATION.unpack(buffer)
    calls = _MACHINES[platform.machine()].calls
    kind = next(kind for kind, its in calls.items() if its == number)
    descriptor, _, _, flags, *_ = (argument & 0xFFFFFFFF for argument in arguments)
    return WatchedCall(identifier, process, kind, descriptor, flags)


def answer(listener: int, call: WatchedCall, *, done: bool) -> None:
    """Let the process continue: the call has succeeded if ``done``, else the kernel performs it."""
    try:
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(call.identifier, 0, 0, 0 if done else _CONTINUE))
    except FileNotFoundError:
        """The process was killed meanwhile."""


def _filter(machine: _Machine) -> bytes:
    numbers = tuple(machine.calls.values())
    count = len(numbers)
    instructions = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 0, count + 1, machine.architecture),
        (_LOAD, 0, 0, _NUMBER_AT),
        *((_JUMP_IF_EQUAL, count - place, 0, number) for place, number in enumerate(numbers)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _NOTIFY),
    ]
    return b"".join(_INSTRUCTION.pack(*each) for each in instructions)
