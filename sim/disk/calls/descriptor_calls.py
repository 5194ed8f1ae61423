"""The calls on descriptors themselves: closing and duplicating them, and their flags."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import Final

from sim.disk.calls.arguments import c_int, truth
from sim.disk.calls.open_flags import open_flags
from sim.disk.calls.process_state import ProcessState
from sim.disk.disk import DEAD
from sim.disk.os_error import os_error
from sim.errors import PowerOff, UnsupportedOperation

_CHANGEABLE: Final = os.O_APPEND | os.O_NOATIME | os.O_NONBLOCK
_ONLY_AT_OPEN: Final = os.O_CREAT | os.O_EXCL | os.O_NOCTTY | os.O_TRUNC | os.O_CLOEXEC
_LARGE_FILE: Final = 0o100000
"""``O_LARGEFILE`` of the kernel, which it sets on every file; that of 64-bit libc is 0."""


class DescriptorCalls(ProcessState):
    """Calls on a descriptor and its open file description, not on the file behind them."""

    __slots__ = ()

    def close(self, fd: int) -> None:
        """Close a descriptor, even when this raises."""
        fd = c_int(fd)
        if self._power.off:
            raise PowerOff(DEAD)
        file = self._descriptors.remove(fd)
        if file is None:
            raise os_error(errno.EBADF)
        disk = self.disk
        if file.number in disk.locks.used:
            self._forget_locks(file)
        if disk.descriptor_interposer is not None:
            disk.descriptor_interposer.closing(file.path, file.number)

    def closerange(self, fd_low: int, fd_high: int, /) -> None:
        """Close the descriptors from ``fd_low`` up to, not including, ``fd_high``.

        Errors are ignored.
        """
        fd_low, fd_high = c_int(fd_low), c_int(fd_high)
        self._must_live()
        for descriptor in sorted(self._files):
            if fd_low <= descriptor < fd_high:
                with suppress(OSError):
                    self.close(descriptor)

    def dup(self, fd: int, /) -> int:
        """Return one more descriptor of the same open file description."""
        file = self._file(fd)
        if len(self._files) >= self._descriptors.limit:
            raise os_error(errno.EMFILE)
        return self._descriptors.add(file)

    def dup_from(self, fd: int, lowest: int, /) -> int:
        """Return one more descriptor, from ``lowest`` on (``F_DUPFD`` of ``fcntl``)."""
        file, lowest = self._file(fd), c_int(lowest)
        if not 0 <= lowest < self._descriptors.first + self._descriptors.limit:
            raise os_error(errno.EINVAL)
        descriptor = self._descriptors.add_from(lowest, file)
        if descriptor is None:
            raise os_error(errno.EMFILE)
        return descriptor

    def dup2(self, fd: int, fd2: int, inheritable: bool = True) -> int:
        """Make ``fd2`` a descriptor of the open file description of ``fd``; return ``fd2``.

        An open ``fd2`` is closed first, and an error of that is lost (dup(2), "NOTES"). Equal
        numbers that are not to be inheritable fail with EINVAL, as ``dup3`` does. Numbers
        below those of this process belong to the real process: ``UnsupportedOperation``.
        """
        fd, fd2 = c_int(fd), c_int(fd2)
        self._must_live()
        if fd == fd2 >= 0 and not inheritable:
            raise os_error(errno.EINVAL)
        file = self._file(fd)
        first = self._descriptors.first
        if not 0 <= fd2 < first + self._descriptors.limit:
            raise os_error(errno.EBADF)
        if fd2 < first:
            raise UnsupportedOperation(
                f"dup2: fd2={fd2} is not modelled; simulated descriptors start at {first}"
            )
        if fd == fd2:
            return fd2
        if fd2 in self._files:
            with suppress(OSError):
                self.close(fd2)
        self._descriptors.add_at(fd2, file)
        if inheritable:
            self._descriptors.inheritable.add(fd2)
        return fd2

    def get_inheritable(self, fd: int, /) -> bool:
        """Return whether a child process would inherit a descriptor; no process has a child."""
        fd = c_int(fd)
        self._file(fd)
        return fd in self._descriptors.inheritable

    def set_inheritable(self, fd: int, inheritable: int, /) -> None:
        """Set the flag that ``get_inheritable`` returns; it has no other effect here."""
        fd, inheritable = c_int(fd), c_int(inheritable)
        self._file(fd)
        if inheritable:
            self._descriptors.inheritable.add(fd)
        else:
            self._descriptors.inheritable.discard(fd)

    def get_blocking(self, fd: int, /) -> bool:
        """Return whether an open file description is without ``O_NONBLOCK``."""
        return not self._file(fd).flags.number & os.O_NONBLOCK

    def set_blocking(self, fd: int, blocking: object, /) -> None:
        """Clear or set ``O_NONBLOCK``; it has no effect on files and directories."""
        fd, blocking = c_int(fd), truth(blocking)
        file = self._file(fd)
        others = file.flags.number & ~os.O_NONBLOCK
        file.flags = open_flags(others if blocking else others | os.O_NONBLOCK)

    def status_flags(self, fd: int, /) -> int:
        """Return the access mode and the status flags (``F_GETFL`` of ``fcntl``)."""
        return self._file(fd).flags.number & ~_ONLY_AT_OPEN | _LARGE_FILE

    def set_status_flags(self, fd: int, flags: int, /) -> None:
        """Set ``O_APPEND``, ``O_NOATIME`` and ``O_NONBLOCK`` (``F_SETFL``); others stay.

        Only the owner of a file may add ``O_NOATIME`` (EPERM).
        """
        fd, flags = c_int(fd), c_int(flags)
        file = self._file(fd)
        is_added = flags & os.O_NOATIME and not file.flags.no_access_time
        if is_added and not self._identity.owns(self._cache[file.number]):
            raise os_error(errno.EPERM)
        if flags & os.O_DIRECT:
            raise UnsupportedOperation("fcntl: O_DIRECT is not modelled; leave it out")
        file.flags = open_flags(file.flags.number & ~_CHANGEABLE | flags & _CHANGEABLE)

    def isatty(self, fd: int, /) -> bool:
        """Return False: there are no terminals, and a closed descriptor is no error."""
        c_int(fd)
        self._must_live()
        return False
