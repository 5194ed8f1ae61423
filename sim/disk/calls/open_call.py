"""``open(2)``: ``do_open`` and ``lookup_open`` of Linux, in their order of checks."""

from __future__ import annotations

import errno
from stat import S_IFREG

from sim.disk.cache.inode import Inode
from sim.disk.calls.arguments import c_int, directory_descriptor
from sim.disk.calls.descriptor import OpenFile
from sim.disk.calls.open_flags import OpenFlags, open_flags
from sim.disk.calls.path_name import PathName, StrOrBytesPath, path_name
from sim.disk.calls.path_walk import Opening
from sim.disk.calls.permissions import SEARCH, WRITE
from sim.disk.calls.process_state import ProcessState
from sim.disk.disk import DEAD
from sim.disk.os_error import os_error
from sim.errors import PowerOff


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
            inode = self._unnamed(name, dir_fd, decoded, mode, path)
        else:
            inode = self._named(name, dir_fd, decoded, mode, path)
        file = OpenFile()
        file.number = number = inode.number
        file.path = name.text
        file.flags = decoded
        file.is_directory = bool(inode.parent)
        file.sync_errors = self.disk.sync_errors.get(number, 0)
        file.offset = 0
        return self._descriptors.add(file)

    def _named(
        self, name: PathName, dir_fd: int | None, flags: OpenFlags, mode: int, path: object
    ) -> Inode:
        """Return the inode that has the name, or make one and return that."""
        directory, last, inode, must_be_directory = self._to_open(name, dir_fd, flags, path)
        if inode is None:
            if not directory.is_linked:
                raise os_error(errno.ENOENT, path)
            self._check_may_change(directory, path)
            return self._made(directory, last, name.text, mode)
        if flags.create and flags.exclusive:
            raise os_error(errno.EEXIST, path)
        if inode.parent:
            if not flags.takes_directory:
                raise os_error(errno.EISDIR, path)
        elif flags.directory or must_be_directory:
            raise os_error(errno.ENOTDIR, path)
        if inode.link_text:
            may_meet = self._identity.may_meet_link_in(directory, inode)
            raise os_error(errno.EACCES if flags.create and not may_meet else errno.ELOOP, path)
        if not self._trusted:
            self._check_access(inode, flags, path)
        if flags.truncate:
            self._drop_privileges(inode, name.text)
            self.disk.resize(inode, 0, name.text)
        return inode

    def _to_open(
        self, name: PathName, dir_fd: int | None, flags: OpenFlags, path: object
    ) -> Opening:
        """Find the name to open, and the inode that it refers to."""
        if name.head is not None:
            directory = self._parent(name, dir_fd, path)
            number = directory.entries.get(name.last)
            inode = None if number is None else self._cache[number]
            if inode is None and not flags.create:
                raise os_error(errno.ENOENT, path)
            if inode is None or not inode.link_text:
                return directory, name.last, inode, False
        start = self._start(name, dir_fd, path, None)
        return self._walk(path).to_open(name, start, follow=flags.follow, creating=flags.create)

    def _check_access(self, inode: Inode, flags: OpenFlags, path: object) -> None:
        if not self._identity.may(inode, flags.wanted):
            raise os_error(errno.EACCES, path)
        if flags.no_access_time and not self._identity.owns(inode):
            raise os_error(errno.EPERM, path)

    def _unnamed(
        self, name: PathName, dir_fd: int | None, flags: OpenFlags, mode: int, path: object
    ) -> Inode:
        """Make a file without a name, by ``O_TMPFILE``."""
        directory = self._resolve(name, dir_fd, path, follow=flags.follow)
        if not directory.is_directory:
            raise os_error(errno.ENOTDIR, path)
        if not self._identity.may(directory, WRITE | SEARCH):
            raise os_error(errno.EACCES, path)
        return self._made(directory, "", name.text, mode)

    def _made(self, directory: Inode, name: str, text: str, mode: int) -> Inode:
        """Make a file in ``directory``."""
        identity = self._identity
        mode = S_IFREG | identity.mode_in(directory, mode) & self._unmasked
        owner = identity.owner_in(directory)
        return self.disk.create(directory, name, mode, text, "", owner)
