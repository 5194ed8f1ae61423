"""``open(2)``: ``do_open`` and ``lookup_open`` of Linux, in their order of checks."""

from __future__ import annotations

import errno
import stat

from sim.disk.descriptor import OpenFile
from sim.disk.disk import DEAD
from sim.disk.inode import Inode
from sim.disk.open_flags import OpenFlags, open_flags
from sim.disk.os_error import os_error
from sim.disk.path_name import PathName, StrOrBytesPath, path_name
from sim.disk.path_walk import Walk
from sim.disk.permissions import SEARCH, WRITE
from sim.disk.process import Process
from sim.errors import PowerOff

_PERMISSION_BITS = 0o7777


class OpenCall(Process):
    """The call that makes descriptors."""

    __slots__ = ()

    def open(
        self, path: StrOrBytesPath, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
    ) -> int:
        """Open or create a file, or open a directory; return a descriptor."""
        disk = self.disk
        if self._dead or disk.off:
            raise PowerOff(DEAD)
        decoded = open_flags(flags)
        if not decoded.valid:
            raise os_error(errno.EINVAL, path)
        name = path_name(path, "open")
        if len(self._files) >= self._descriptors.limit:
            raise os_error(errno.EMFILE, path)
        if disk.descriptor_interposer is not None:
            disk.descriptor_interposer.opening(name.text, len(self._files))
        mode &= ~self._mask & _PERMISSION_BITS
        if decoded.unnamed:
            return self._open_unnamed(name, decoded, mode, dir_fd, path)
        directory = self._quick_parent(name, dir_fd)
        number = None if directory is None else directory.entries.get(name.last)
        inode = None if number is None else self._inode(number)
        if directory is None or not directory.links or (inode is not None and inode.target):
            return self._open_carefully(name, decoded, mode, dir_fd, path)
        if inode is None:
            if not decoded.create:
                raise os_error(errno.ENOENT, path)
            return self._open_new(directory, name.last, name.text, decoded, mode)
        return self._open_found(inode, name.text, decoded, path)

    def _open_carefully(
        self, name: PathName, flags: OpenFlags, mode: int, dir_fd: int | None, path: object
    ) -> int:
        """Open where the way is not plain, or where permissions count."""
        walk = Walk(self.disk.cache, self._identity, path)
        start = self._start(name, dir_fd, path, None)
        found = walk.to_open(name, start, follow=flags.follow, creating=flags.create)
        if found.inode is not None:
            asks = flags.directory or found.must_be_directory
            return self._open_found(found.inode, name.text, flags, path, is_directory=asks)
        if not found.directory.links:
            raise os_error(errno.ENOENT, path)
        self._may_change(found.directory, path)
        return self._open_new(found.directory, found.name, name.text, flags, mode)

    def _open_new(self, directory: Inode, name: str, path: str, flags: OpenFlags, mode: int) -> int:
        directory = self._own(directory)
        owner = self._owner(directory)
        inode = self.disk.create(directory, name, stat.S_IFREG | mode, path, owner=owner)
        return self._descriptors.add(OpenFile(inode.number, path, flags, False, 0))

    def _open_found(
        self,
        inode: Inode,
        path: str,
        flags: OpenFlags,
        given: object,
        *,
        is_directory: bool = False,
    ) -> int:
        inode_is_directory = bool(inode.parent)
        if flags.create or inode_is_directory or is_directory or flags.directory:
            self._check_kind(inode, flags, given, asks_directory=is_directory or flags.directory)
        if inode.target:
            raise os_error(errno.ELOOP, given)
        if not self._trusted:
            self._check_access(inode, flags, given)
        if flags.truncate:
            self.disk.resize(self._own(inode), 0, path)
        errors = self.disk.sync_errors.get(inode.number, 0)
        file = OpenFile(inode.number, path, flags, inode_is_directory, errors)
        return self._descriptors.add(file)

    def _check_kind(
        self, inode: Inode, flags: OpenFlags, given: object, *, asks_directory: bool
    ) -> None:
        if flags.create and flags.exclusive:
            raise os_error(errno.EEXIST, given)
        if inode.is_directory:
            if flags.create or flags.wanted & WRITE:
                raise os_error(errno.EISDIR, given)
        elif asks_directory:
            raise os_error(errno.ENOTDIR, given)

    def _check_access(self, inode: Inode, flags: OpenFlags, given: object) -> None:
        if not self._identity.may(inode, flags.wanted):
            raise os_error(errno.EACCES, given)
        if flags.no_access_time and not self._identity.owns(inode):
            raise os_error(errno.EPERM, given)

    def _open_unnamed(
        self, name: PathName, flags: OpenFlags, mode: int, dir_fd: int | None, path: object
    ) -> int:
        """Make a file without a name, by ``O_TMPFILE``."""
        walk = Walk(self.disk.cache, self._identity, path)
        start = self._start(name, dir_fd, path, None)
        directory = walk.resolve(name, start, follow=flags.follow)
        if not directory.is_directory:
            raise os_error(errno.ENOTDIR, path)
        if not self._identity.may(directory, WRITE | SEARCH):
            raise os_error(errno.EACCES, path)
        return self._open_new(directory, "", name.text, flags, mode)
