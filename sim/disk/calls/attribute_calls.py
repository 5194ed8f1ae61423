"""The calls that change the mode, the owner and the times of an inode."""

from __future__ import annotations

import errno
import math
import stat
from operator import index
from typing import Any, Final

from sim.disk.cache.inode import Inode
from sim.disk.calls.arguments import (
    LONG_MAX,
    UNCHANGED,
    c_int,
    directory_descriptor,
    user_or_group,
)
from sim.disk.calls.interpreter import NO_DESCRIPTOR, UTIME_NAMES_FILE, UTIME_TAKES_FLOATS
from sim.disk.calls.path_name import (
    FileDescriptorOrPath,
    PathName,
    StrOrBytesPath,
    path_name,
    path_or_descriptor,
    refuse_beside_descriptor,
)
from sim.disk.calls.permissions import WRITE
from sim.disk.calls.process_state import ProcessState
from sim.disk.os_error import os_error

_SECOND_NS: Final = 1_000_000_000
_ABSENT: Final[Any] = object()
_OUT_OF_RANGE: Final = "timestamp out of range for platform time_t"


class AttributeCalls(ProcessState):
    """Calls that change attributes."""

    __slots__ = ()

    def chmod(
        self,
        path: FileDescriptorOrPath,
        mode: int,
        *,
        dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        """Change permission bits; those of a symbolic link cannot be changed."""
        where, mode = path_or_descriptor(path, "chmod"), c_int(mode)
        directory_fd = directory_descriptor(dir_fd)
        follow = follow_symlinks or not isinstance(where, PathName)
        inode = self._find(where, directory_fd, path, follow=follow)
        if inode.is_symlink:
            if directory_fd is not None:
                raise ValueError("chmod: cannot use dir_fd and follow_symlinks together")
            raise NotImplementedError("chmod: follow_symlinks unavailable on this platform")
        self._set_mode(inode, mode, self._text(where), path)

    def fchmod(self, fd: int, mode: int) -> None:
        """Change the permission bits of an open file."""
        fd, mode = c_int(fd), c_int(mode)
        file = self._file(fd)
        self._set_mode(self._cache[file.number], mode, file.path)

    def chown(
        self,
        path: FileDescriptorOrPath,
        uid: int,
        gid: int,
        *,
        dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        """Change owner and group; -1 leaves one unchanged."""
        where = path_or_descriptor(path, "chown")
        uid, gid = user_or_group(uid, "uid"), user_or_group(gid, "gid")
        directory_fd = directory_descriptor(dir_fd)
        refuse_beside_descriptor("chown", where, directory_fd, follow=follow_symlinks)
        inode = self._find(where, directory_fd, path, follow=follow_symlinks)
        self._set_owner(inode, uid, gid, self._text(where), path)

    def fchown(self, fd: int, uid: int, gid: int) -> None:
        """Change owner and group of an open file."""
        fd, uid, gid = c_int(fd), user_or_group(uid, "uid"), user_or_group(gid, "gid")
        file = self._file(fd)
        self._set_owner(self._cache[file.number], uid, gid, file.path)

    def lchown(self, path: StrOrBytesPath, uid: int, gid: int) -> None:
        """Change owner and group of a path, of the link itself if it is a symbolic link."""
        name = path_name(path, "lchown")
        uid, gid = user_or_group(uid, "uid"), user_or_group(gid, "gid")
        inode = self._resolve(name, None, path, follow=False)
        self._set_owner(inode, uid, gid, name.text, path)

    def utime(
        self,
        path: FileDescriptorOrPath,
        times: tuple[float, float] | None = None,
        *,
        ns: tuple[int, int] = _ABSENT,
        dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        """Set the times of access and modification, in seconds or nanoseconds, or to now."""
        shown = path if UTIME_NAMES_FILE else None
        where, directory_fd = path_or_descriptor(path, "utime"), directory_descriptor(dir_fd)
        times_ns = _times_ns(times, ns)
        refuse_beside_descriptor("utime", where, directory_fd, follow=follow_symlinks)
        if where == NO_DESCRIPTOR:  # utimensat(2) without a path
            raise os_error(errno.EINVAL, shown)
        try:
            inode = self._find(where, directory_fd, path, follow=follow_symlinks)
        except OSError as error:
            raise os_error(error.errno or errno.EINVAL, shown) from None
        if not self._identity.owns(inode):
            if times_ns is not None:
                raise os_error(errno.EPERM, shown)
            if not self._identity.may(inode, WRITE):
                raise os_error(errno.EACCES, shown)
        if times_ns is None:
            now_ns = self.disk.now_ns()
            times_ns = now_ns, now_ns
        self.disk.set_attributes(inode, self._text(where), times_ns=times_ns)

    # -- shared ----------------------------------------------------------------------------

    def _set_mode(self, inode: Inode, mode: int, text: str, path: object = None) -> None:
        identity = self._identity
        if not identity.owns(inode):
            raise os_error(errno.EPERM, path)
        mode = stat.S_IFMT(inode.mode) | mode & 0o7777
        if not identity.keeps_setgid(inode.gid):
            mode &= ~stat.S_ISGID
        self.disk.set_attributes(inode, text, mode=mode)

    def _set_owner(self, inode: Inode, uid: int, gid: int, text: str, path: object = None) -> None:
        identity = self._identity
        mode = inode.mode if inode.is_directory else identity.without_privileges(inode)
        if not self._may_give(inode, uid, gid) or (mode != inode.mode and not identity.owns(inode)):
            raise os_error(errno.EPERM, path)
        self.disk.set_attributes(
            inode,
            text,
            mode=mode,
            uid=None if uid == UNCHANGED else uid,
            gid=None if gid == UNCHANGED else gid,
        )

    def _may_give(self, inode: Inode, uid: int, gid: int) -> bool:
        """Return whether this process may make ``uid`` and ``gid`` the owners of ``inode``."""
        identity = self._identity
        if not identity.uid or uid == gid == UNCHANGED:
            return True
        keeps_user = uid in {UNCHANGED, inode.uid}
        gives_group = gid in {UNCHANGED, inode.gid} or identity.is_member(gid)
        return identity.owns(inode) and keeps_user and gives_group


def _times_ns(times: object, ns: object) -> tuple[int, int] | None:
    """Return the times that ``utime`` is given, in nanoseconds; None for the current time.

    Raises ``ValueError`` for both arguments, and ``TypeError`` for anything but a pair.
    """
    if times is not None and ns is not _ABSENT:
        raise ValueError("utime: you may specify either 'times' or 'ns' but not both")
    if times is not None:
        if type(times) is not tuple or len(times) != 2:
            raise TypeError("utime: 'times' must be either a tuple of two ints or None")
        return _from_seconds(times[0]), _from_seconds(times[1])
    if ns is _ABSENT:
        return None
    if type(ns) is not tuple or len(ns) != 2:
        raise TypeError("utime: 'ns' must be a tuple of two ints")
    return _from_nanoseconds(ns[0]), _from_nanoseconds(ns[1])


def _from_seconds(seconds: Any) -> int:
    """Return seconds in nanoseconds, rounded down."""
    kind = type(seconds)
    if not isinstance(seconds, float):
        if not UTIME_TAKES_FLOATS or hasattr(kind, "__index__"):
            return _whole_seconds(seconds) * _SECOND_NS
        if not hasattr(kind, "__float__"):
            raise TypeError(f"must be real number, not {kind.__name__}")
        seconds = float(seconds)
    if math.isnan(seconds):
        raise ValueError("Invalid value NaN (not a number)")
    if math.isinf(seconds):
        raise OverflowError(_OUT_OF_RANGE)
    fraction, whole = math.modf(seconds)
    return _whole_seconds(int(whole)) * _SECOND_NS + math.floor(fraction * 1e9)


def _from_nanoseconds(value: Any) -> int:
    parts = divmod(value, _SECOND_NS)
    if type(parts) is not tuple or len(parts) != 2:
        kind = type(value).__name__
        raise TypeError(f"{kind}.__divmod__() must return a 2-tuple, not {type(parts).__name__}")
    seconds, remainder_ns = parts
    return _whole_seconds(seconds) * _SECOND_NS + int(index(remainder_ns))


def _whole_seconds(value: Any) -> int:
    """Convert to ``time_t``."""
    seconds = int(index(value))
    if not -LONG_MAX - 1 <= seconds <= LONG_MAX:
        raise OverflowError(_OUT_OF_RANGE)
    return seconds
