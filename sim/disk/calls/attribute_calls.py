"""The calls that look at an inode's attributes, and change them."""

from __future__ import annotations

import errno
import math
import os
import stat
from typing import Final

from sim.disk.cache.inode import BLOCK_BYTES, Inode
from sim.disk.calls.descriptor_calls import DescriptorCalls
from sim.disk.calls.path_name import FileDescriptorOrPath, StrOrBytesPath
from sim.disk.calls.permissions import WRITE
from sim.disk.calls.stat_result import stat_result
from sim.disk.os_error import os_error
from sim.errors import UnsupportedOperation

_SECOND_NS: Final = 1_000_000_000
_UNCHANGED: Final = -1


class AttributeCalls(DescriptorCalls):
    """Calls on what ``stat`` shows."""

    __slots__ = ()

    def stat(
        self,
        path: FileDescriptorOrPath,
        *,
        dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> os.stat_result:
        """Tell the attributes of what a path or a descriptor means."""
        return stat_result(self._meant(path, "stat", dir_fd, follow=follow_symlinks))

    def lstat(self, path: StrOrBytesPath, *, dir_fd: int | None = None) -> os.stat_result:
        """Do what ``stat`` does, but do not follow a symbolic link at the end."""
        return stat_result(self._resolve(path, "lstat", dir_fd, follow=False))

    def fstat(self, fd: int) -> os.stat_result:
        """Tell the attributes of an open file."""
        return stat_result(self._inode(self._file(fd).number))

    def mode_of(self, path: StrOrBytesPath) -> int:
        """Return the ``st_mode`` of ``stat``, for those who want no more of it."""
        return self._resolve(path, "stat").mode

    def size_of(self, fd: int) -> int:
        """Return the ``st_size`` of ``fstat`` (bytes), for those who want no more of it."""
        number, cache = self._file(fd).number, self._cache
        inode = cache.changed.get(number) or cache.base[number]
        return BLOCK_BYTES if inode.parent else inode.size

    def access(
        self,
        path: FileDescriptorOrPath,
        mode: int,
        *,
        dir_fd: int | None = None,
        effective_ids: bool = False,  # noqa: ARG002 - as in os; real and effective ids are the same
        follow_symlinks: bool = True,
    ) -> bool:
        """Say whether ``mode`` (``R_OK | W_OK | X_OK``, or ``F_OK``) would be granted."""
        if mode & ~(os.R_OK | os.W_OK | os.X_OK):
            return False
        try:
            inode = self._meant(path, "access", dir_fd, follow=follow_symlinks)
        except OSError:
            return False
        return self._identity.may(inode, mode)

    def truncate(self, path: FileDescriptorOrPath, length: int) -> None:
        """Cut a file to ``length`` bytes, or let it grow to it with zeros."""
        if isinstance(path, int):
            self.ftruncate(path, length)
            return
        self._must_live()
        if length < 0:
            raise os_error(errno.EINVAL, path)
        inode = self._resolve(path, "truncate")
        if inode.is_directory:
            raise os_error(errno.EISDIR, path)
        if not self._identity.may(inode, WRITE):
            raise os_error(errno.EACCES, path)
        self._resize(inode.number, length, _text(path), path)

    def chmod(
        self,
        path: FileDescriptorOrPath,
        mode: int,
        *,
        dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        """Change permission bits."""
        if not follow_symlinks:
            raise UnsupportedOperation("chmod: Linux has no permission bits of symbolic links")
        self._set_mode(self._meant(path, "chmod", dir_fd), mode, _text(path), path)

    def fchmod(self, fd: int, mode: int) -> None:
        """Change the permission bits of an open file."""
        self._set_mode(self._inode(self._file(fd).number), mode, f"descriptor {fd}")

    def chown(
        self,
        path: FileDescriptorOrPath,
        uid: int,
        gid: int,
        *,
        dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        """Change owner and group; -1 leaves one as it is."""
        inode = self._meant(path, "chown", dir_fd, follow=follow_symlinks)
        self._set_owner(inode, uid, gid, _text(path), path)

    def fchown(self, fd: int, uid: int, gid: int) -> None:
        """Change owner and group of an open file."""
        self._set_owner(self._inode(self._file(fd).number), uid, gid, f"descriptor {fd}")

    def lchown(self, path: StrOrBytesPath, uid: int, gid: int) -> None:
        """Do what ``chown`` does, but do not follow a symbolic link at the end."""
        self.chown(path, uid, gid, follow_symlinks=False)

    def utime(
        self,
        path: FileDescriptorOrPath,
        times: tuple[float, float] | None = None,
        *,
        ns: tuple[int, int] | None = None,
        dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        """Set the times of access and modification, in seconds or nanoseconds, or to now.

        Like that of CPython, its error names no file: it may as well be about a time.
        """
        if times is not None and ns is not None:
            raise ValueError("utime: you may specify either 'times' or 'ns' but not both")
        if times is not None:
            ns = _nanoseconds(times[0]), _nanoseconds(times[1])
        try:
            inode = self._meant(path, "utime", dir_fd, follow=follow_symlinks)
        except OSError as failed:
            raise os_error(failed.errno or errno.EINVAL) from None
        if not self._identity.owns(inode):
            if ns is not None:
                raise os_error(errno.EPERM)
            if not self._identity.may(inode, WRITE):
                raise os_error(errno.EACCES)
        now_ns = self.disk.now_ns() if ns is None else 0
        self.disk.set_attributes(self._own(inode), _text(path), times_ns=ns or (now_ns, now_ns))

    # -- what they have in common --------------------------------------------------------

    def _meant(
        self,
        path: FileDescriptorOrPath,
        call: str,
        dir_fd: int | None = None,
        *,
        follow: bool = True,
    ) -> Inode:
        """Return the inode that a path or a descriptor means, for reading."""
        if not isinstance(path, int):
            return self._resolve(path, call, dir_fd, follow=follow)
        self._must_live()
        file = self._files.get(path)
        if file is None:
            raise os_error(errno.EBADF, path)
        return self._inode(file.number)

    def _set_mode(self, inode: Inode, mode: int, text: str, path: object = None) -> None:
        if not self._identity.owns(inode):
            raise os_error(errno.EPERM, path)
        mode = stat.S_IFMT(inode.mode) | stat.S_IMODE(mode)
        self.disk.set_attributes(self._own(inode), text, mode=mode)

    def _set_owner(self, inode: Inode, uid: int, gid: int, text: str, path: object = None) -> None:
        if not self._may_give(inode, uid, gid):
            raise os_error(errno.EPERM, path)
        self.disk.set_attributes(
            self._own(inode),
            text,
            mode=_without_privilege(inode.mode),
            uid=None if uid == _UNCHANGED else uid,
            gid=None if gid == _UNCHANGED else gid,
        )

    def _may_give(self, inode: Inode, uid: int, gid: int) -> bool:
        """Say whether this process may make ``uid`` and ``gid`` the owners of ``inode``."""
        identity = self._identity
        if not identity.uid:
            return True
        keeps_user = uid in {_UNCHANGED, inode.uid}
        gives_group = gid in {_UNCHANGED, inode.gid} or identity.is_member(gid)
        if uid == gid == _UNCHANGED:
            return True
        return identity.owns(inode) and keeps_user and gives_group


def _text(path: FileDescriptorOrPath) -> str:
    return f"descriptor {path}" if isinstance(path, int) else os.fsdecode(path)


def _nanoseconds(seconds: float) -> int:
    """Return seconds as ``os.utime`` takes them: rounded down, never up."""
    if isinstance(seconds, int):
        return seconds * _SECOND_NS
    fraction, whole = math.modf(seconds)
    return int(whole) * _SECOND_NS + math.floor(fraction * 1e9)


def _without_privilege(mode: int) -> int:
    """Return the mode after a change of owner, which ends setuid and an executable's setgid."""
    if stat.S_ISDIR(mode):
        return mode
    mode &= ~stat.S_ISUID
    return mode & ~stat.S_ISGID if mode & stat.S_IXGRP else mode
