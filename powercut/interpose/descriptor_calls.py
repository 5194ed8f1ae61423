"""Wrappers of the functions of ``os`` and ``fcntl`` that take descriptors."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import termios
from struct import Struct
from typing import Any, Final

from powercut.interpose import fcntl_calls
from powercut.interpose.lifetime import Lifetime
from powercut.interpose.refusal import refusing
from powercut.interpose.router import Router
from powercut.interpose.wrapper import Real, Routed, is_of_disk
from sim.disk.calls.descriptor import FIRST_DESCRIPTOR
from sim.disk.calls.interpreter import SENDFILE_CHECKS_COUNT
from sim.disk.calls.process import Process
from sim.disk.os_error import os_error
from sim.errors import HarnessError

_INT: Final = Struct("i")


def one_descriptor_call(name: str, real: Real) -> Routed:
    """Route a call whose only argument is a descriptor."""
    method = getattr(Process, name)

    def routed(router: Router, fd: Any) -> Any:
        lifetime = router.lifetime
        if lifetime is None:
            return real(fd)
        if fd >= FIRST_DESCRIPTOR if type(fd) is int else is_of_disk(fd):
            if lifetime.is_plain:
                with lifetime.lock:
                    return method(lifetime.process, fd)
            return lifetime.call(method, fd)
        return real(fd)

    return routed


def descriptor_call(name: str, real: Real) -> Routed:
    method = getattr(Process, name)

    def routed(router: Router, fd: Any, *arguments: Any, **options: Any) -> Any:
        lifetime = router.lifetime
        if lifetime is None:
            return real(fd, *arguments, **options)
        if fd >= FIRST_DESCRIPTOR if type(fd) is int else is_of_disk(fd):
            if lifetime.is_plain and not options:
                try:
                    with lifetime.lock:
                        return method(lifetime.process, fd, *arguments)
                except HarnessError as mistake:
                    lifetime.refuse(mistake)
                    raise
            return lifetime.call(method, fd, *arguments, **options)
        return real(fd, *arguments, **options)

    return routed


def no_terminal_call(name: str, real: Real) -> Routed:
    del name

    def routed(router: Router, *arguments: Any, **options: Any) -> Any:
        if router.lifetime is not None and arguments and is_of_disk(arguments[0]):
            router.lifetime.call(Process.fstat, arguments[0])
            raise os_error(errno.ENOTTY)
        return real(*arguments, **options)

    return routed


def device_encoding_call(name: str, real: Real) -> Routed:
    del name

    def routed(router: Router, fd: int) -> Any:
        return None if router.lifetime is not None and is_of_disk(fd) else real(fd)

    return routed


def closerange_call(real: Real) -> Routed:
    def routed(router: Router, fd_low: int, fd_high: int, /) -> None:
        lifetime = router.lifetime
        if lifetime is not None and fd_high > FIRST_DESCRIPTOR:
            lifetime.call(Process.closerange, fd_low, fd_high)
            fd_high = FIRST_DESCRIPTOR
        real(fd_low, fd_high)

    return routed


def dup2_call(real: Real) -> Routed:
    def routed(router: Router, fd: int, fd2: int, inheritable: bool = True) -> int:
        lifetime = router.lifetime
        if lifetime is not None and (is_of_disk(fd) or is_of_disk(fd2)):
            if not is_of_disk(fd):
                lifetime.call(refusing("dup2 of a real descriptor to one of the disk"))
            number: int = lifetime.call(Process.dup2, fd, fd2, inheritable)
            return number
        found: int = real(fd, fd2, inheritable)
        return found

    return routed


# -- between two files ---------------------------------------------------------------------------


def copy_file_range_call(real: Real) -> Routed:
    def routed(
        router: Router,
        src: int,
        dst: int,
        count: int,
        offset_src: int | None = None,
        offset_dst: int | None = None,
    ) -> int:
        lifetime = router.lifetime
        on_disk = _are_of_disk(lifetime, src, dst)
        if on_disk == (False, False):
            copied: int = real(src, dst, count, offset_src, offset_dst)
            return copied
        assert lifetime is not None
        if on_disk == (True, True):
            return lifetime.call(Process.copy_file_range, src, dst, count, offset_src, offset_dst)
        _check_count(count)
        modes = _mode(src), _mode(dst)
        if any(map(stat.S_ISDIR, modes)):
            raise os_error(errno.EISDIR)
        if not all(map(stat.S_ISREG, modes)):
            raise os_error(errno.EINVAL)
        return _copy(src, offset_src, dst, offset_dst, count)

    return routed


def sendfile_call(real: Real) -> Routed:
    def routed(
        router: Router, out_fd: int, in_fd: int, offset: int | None, count: int, *more: Any
    ) -> int:
        lifetime = router.lifetime
        on_disk = _are_of_disk(lifetime, out_fd, in_fd)
        if on_disk == (False, False):
            sent: int = real(out_fd, in_fd, offset, count, *more)
            return sent
        assert lifetime is not None
        if on_disk == (True, True):
            return lifetime.call(Process.sendfile, out_fd, in_fd, offset, count)
        if SENDFILE_CHECKS_COUNT:
            _check_count(count)
        if offset is None and _is_stream(in_fd):
            raise os_error(errno.EINVAL)
        return _copy(in_fd, offset, out_fd, None, count)

    return routed


def splice_call(real: Real) -> Routed:
    def routed(
        router: Router,
        src: int,
        dst: int,
        count: int,
        offset_src: int | None = None,
        offset_dst: int | None = None,
        flags: int = 0,
    ) -> int:
        on_disk = _are_of_disk(router.lifetime, src, dst)
        if on_disk == (False, False):
            moved: int = real(src, dst, count, offset_src, offset_dst, flags)
            return moved
        _check_count(count)
        modes = _mode(src), _mode(dst)
        if count and not any(map(stat.S_ISFIFO, modes)):
            raise os_error(errno.EINVAL)
        if flags & os.SPLICE_F_NONBLOCK:
            _must_not_wait(src, dst)
        if stat.S_ISFIFO(modes[0]) and offset_src is None:
            return _drain(src, dst, offset_dst, count)
        return _copy(src, offset_src, dst, offset_dst, count)

    return routed


def _are_of_disk(lifetime: Lifetime | None, first: int, second: int) -> tuple[bool, bool]:
    if lifetime is None:
        return False, False
    return is_of_disk(first), is_of_disk(second)


def _mode(fd: int) -> int:
    return os.fstat(fd).st_mode


def _is_stream(fd: int) -> bool:
    """Return whether a descriptor has no offset: one of a pipe or a socket."""
    return stat.S_ISFIFO(_mode(fd)) or stat.S_ISSOCK(_mode(fd))


def _check_count(count: int) -> None:
    if count < 0:
        raise ValueError("count cannot be negative")


def _must_not_wait(src: int, dst: int) -> None:
    """Fail with EAGAIN if a pipe is empty, or full; a file is always ready."""
    watch = select.poll()
    for fd, event in ((src, select.POLLIN), (dst, select.POLLOUT)):
        if stat.S_ISFIFO(_mode(fd)):
            watch.register(fd, event)
            if not watch.poll(0):
                raise os_error(errno.EAGAIN)


def _copy(src: int, from_offset: int | None, dst: int, to_offset: int | None, count: int) -> int:
    """Copy bytes from one file to another that is not on the same disk; return their number.

    As on Linux these are the bytes that one write takes, and the source moves by them.
    """
    modes = _mode(src), _mode(dst)
    if count and stat.S_ISDIR(modes[0]):
        raise os_error(errno.EINVAL)
    if stat.S_ISFIFO(modes[1]):
        count = min(count, _room(dst))
    start = os.lseek(src, 0, os.SEEK_CUR) if from_offset is None else from_offset
    data = os.pread(src, count, start)
    if not data:
        return 0
    written = _write(dst, data, to_offset)
    if from_offset is None:
        os.lseek(src, start + written, os.SEEK_SET)
    return written


def _room(pipe: int) -> int:
    """Return a number of bytes that a pipe takes without waiting, unless it is full.

    The page that is read next counts as full.
    """
    size: int = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
    waiting: int
    (waiting,) = _INT.unpack(fcntl.ioctl(pipe, termios.FIONREAD, bytes(_INT.size)))
    return max(size - waiting - (select.PIPE_BUF if waiting else 0), select.PIPE_BUF)


def _drain(pipe: int, dst: int, to_offset: int | None, count: int) -> int:
    """Move bytes from a pipe to a file of the disk; return their number."""
    _write(dst, b"", to_offset)  # fails before the pipe is read
    data = os.read(pipe, count)
    written = 0
    while written < len(data):
        offset = None if to_offset is None else to_offset + written
        try:
            written += _write(dst, data[written:], offset)
        except OSError:
            if not written:
                raise
            break
    return written


def _write(fd: int, data: bytes, offset: int | None) -> int:
    return os.write(fd, data) if offset is None else os.pwrite(fd, data, offset)


# -- locks ---------------------------------------------------------------------------------------


def os_lockf_call(real: Real) -> Routed:
    def routed(router: Router, fd: int, command: int, length: int, /) -> None:
        lifetime = router.lifetime
        if lifetime is None or not is_of_disk(fd):
            real(fd, command, length)
        elif command == os.F_LOCK:
            lifetime.waiting_call(Process.lockf, fd, os.F_TLOCK, length)
        else:
            lifetime.call(Process.lockf, fd, command, length)

    return routed


def fcntl_call(name: str, real: Real) -> Routed:
    call = getattr(fcntl_calls, name)

    def routed(router: Router, fd: Any, *arguments: Any) -> Any:
        lifetime = router.lifetime
        if lifetime is not None and is_of_disk(fd):
            return call(lifetime, fd, *arguments)
        return real(fd, *arguments)

    return routed
