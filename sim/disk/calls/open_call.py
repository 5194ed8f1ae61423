"""``open(2)``: ``do_open`` and ``lookup_open`` of Linux, in their order of checks."""

from __future__ import annotations

import errno
from stat import S_IFREG
from typing import Final

from sim.disk.cache.inode import Inode
from sim.disk.calls.arguments import c_int, directory_descriptor
from sim.disk.calls.open_flags import OpenFlags, open_flags
from sim.disk.calls.path_name import PathName, StrOrBytesPath, path_name
from sim.disk.calls.path_walk import Opening
from sim.disk.calls.permissions import SEARCH, WRITE
from sim.disk.calls.process_state import ProcessState
from sim.disk.disk import DEAD
from sim.disk.os_error import os_error
from sim.errors import PowerOff

# The constructor of a named tuple is a Python function, and takes three times as long.
_new: Final = tuple.__new__


class OpenCall(ProcessState):
    """The call that makes descriptors."""

    __slots__ = ()

    def open(
        self, path: StrOrBytesPath, flags: int, mode: int = 0o777, *, dir_fd: int | None = None
    ) -> int:
        """Open or create a file, or open a directory; return a descriptor."""
        name, decoded, mode = path_name(path, "open"), open_flags(c_int(flags)), c_int(mode)
        if dir_fd is not None:
            dir_fd = directory_descriptor(dir_fd)
        if self._power.off:
            raise PowerOff(DEAD)
        if not decoded.valid:
            raise os_error(errno.EINVAL, path)
        if name.error:
            raise os_error(name.error, path)
        if len(self._files) >= self._descriptors.limit:
            raise os_error(errno.EMFILE, path)
        interposer = self.disk.descriptor_interposer
        if interposer is not None:
            interposer.opening(name.text, len(self._files))
        if decoded.unnamed:
            return self._open_unnamed(name, dir_fd, decoded, mode, path)
        found = self._to_open(name, dir_fd, decoded, path)
        if found.inode is not None:
            return self._open_found(found, found.inode, name.text, decoded, path)
        if not found.directory.is_linked:
            raise os_error(errno.ENOENT, path)
        self._check_may_change(found.directory, path)
        return self._open_new(found.directory, found.name, name.text, decoded, mode)

    def _to_open(
        self, name: PathName, dir_fd: int | None, flags: OpenFlags, path: object
    ) -> Opening:
        """Find the name to open, and the inode that it refers to."""
        if name.head is not None:
            directory = self._parent(name, dir_fd, path)
            number = directory.entries.get(name.last)
            inode = None if number is None else self._inode(number)
            if inode is None and not flags.create:
                raise os_error(errno.ENOENT, path)
            if inode is None or not inode.link_text:
                return _new(Opening, (directory, name.last, inode, False))
        start = self._start(name, dir_fd, path, None)
        return self._walk(path).to_open(name, start, follow=flags.follow, creating=flags.create)

    def _open_found(
        self, found: Opening, inode: Inode, text: str, flags: OpenFlags, path: object
    ) -> int:
        """Open an inode that exists."""
        is_directory = bool(inode.parent)
        if flags.create and flags.exclusive:
            raise os_error(errno.EEXIST, path)
        if is_directory:
            if not flags.takes_directory:
                raise os_error(errno.EISDIR, path)
        elif flags.directory or found.must_be_directory:
            raise os_error(errno.ENOTDIR, path)
        if inode.link_text:
            may_meet = self._identity.may_meet_link_in(found.directory, inode)
            raise os_error(errno.EACCES if flags.create and not may_meet else errno.ELOOP, path)
        if not self._trusted:
            self._check_access(inode, flags, path)
        disk = self.disk
        if flags.truncate:
            self._drop_privileges(inode, text)
            disk.resize(inode, 0, text)
        errors = disk.sync_errors.get(inode.number, 0)
        return self._descriptors.open(inode.number, text, flags, is_directory, errors)

    def _check_access(self, inode: Inode, flags: OpenFlags, path: object) -> None:
        if not self._identity.may(inode, flags.wanted):
            raise os_error(errno.EACCES, path)
        if flags.no_access_time and not self._identity.owns(inode):
            raise os_error(errno.EPERM, path)

    def _open_unnamed(
        self, name: PathName, dir_fd: int | None, flags: OpenFlags, mode: int, path: object
    ) -> int:
        """Make a file without a name, by ``O_TMPFILE``."""
        directory = self._resolve(name, dir_fd, path, follow=flags.follow)
        if not directory.is_directory:
            raise os_error(errno.ENOTDIR, path)
        if not self._identity.may(directory, WRITE | SEARCH):
            raise os_error(errno.EACCES, path)
        return self._open_new(directory, "", name.text, flags, mode)

    def _open_new(self, directory: Inode, name: str, text: str, flags: OpenFlags, mode: int) -> int:
        """Make a file in ``directory`` and open it."""
        identity = self._identity
        mode = S_IFREG | identity.mode_in(directory, mode) & self._unmasked
        owner = identity.owner_in(directory)
        inode = self.disk.create(directory, name, mode, text, "", owner)
        return self._descriptors.open(inode.number, text, flags, False, 0)
