"""``open(2)``: ``do_open`` and ``lookup_open`` of Linux, in their order of checks."""

from __future__ import annotations

import errno
from stat import S_IFREG, S_ISGID

from sim.disk.cache.inode import Inode
from sim.disk.calls.open_flags import OpenFlags, open_flags
from sim.disk.calls.path_name import PathName, StrOrBytesPath, path_name
from sim.disk.calls.path_walk import Walk
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
        if self._power.off:
            raise PowerOff(DEAD)
        decoded = open_flags(flags)
        if dir_fd is not None or not decoded.plain:
            return self._open_carefully(path, decoded, mode, dir_fd)
        found = self._known.get(path) or self._learn(path)
        if found is None:
            return self._open_carefully(path, decoded, mode, None)
        directory, name = found
        calm = self.disk.calm
        if not calm or len(self._files) >= self._descriptors.limit:
            self._admit(path, name.text)
        number = directory.entries.get(name.last)
        if number is not None:
            cache = self._cache
            inode = cache.changed.get(number) or cache.base[number]
            if not inode.link_text:
                is_directory = inode.parent != 0
                if calm and (decoded.takes_directory if is_directory else decoded.takes_file):
                    return self._descriptors.open(number, name.text, decoded, is_directory, 0)
                return self._open_found(inode, name.text, decoded, path, decoded.directory)
        elif not decoded.create:
            raise os_error(errno.ENOENT, path)
        elif directory.links:
            return self._open_new(directory, name.last, name.text, decoded, mode)
        return self._open_carefully(path, decoded, mode, None, is_admitted=True)

    def _admit(self, path: object, text: str) -> None:
        """Raise EMFILE, or what a fault makes of an open, before the path is walked."""
        if self._descriptors.is_full:
            raise os_error(errno.EMFILE, path)
        interposer = self.disk.descriptor_interposer
        if interposer is not None:
            interposer.opening(text, len(self._files))

    def _open_carefully(
        self,
        path: StrOrBytesPath,
        flags: OpenFlags,
        mode: int,
        dir_fd: int | None,
        *,
        is_admitted: bool = False,
    ) -> int:
        """Open where the way is not plain, or where permissions count."""
        if not flags.valid:
            raise os_error(errno.EINVAL, path)
        name = path_name(path, "open")
        if not is_admitted:
            self._admit(path, name.text)
        walk = Walk(self.disk.cache, self._identity, path)
        start = self._start(name, dir_fd, path, None)
        if flags.unnamed:
            return self._open_unnamed(walk, name, start, flags, mode)
        found = walk.to_open(name, start, follow=flags.follow, creating=flags.create)
        if found.inode is not None:
            asks = flags.directory or found.must_be_directory
            return self._open_found(found.inode, name.text, flags, path, asks)
        if not found.directory.links:
            raise os_error(errno.ENOENT, path)
        self._may_change(found.directory, path)
        directory = self._own(found.directory)
        return self._open_new(directory, found.name, name.text, flags, mode)

    def _open_new(self, directory: Inode, name: str, path: str, flags: OpenFlags, mode: int) -> int:
        """Make a file in a directory that is there to be changed, and open it."""
        mode = S_IFREG | mode & self._unmasked
        owner = self._owner(directory) if directory.mode & S_ISGID else self._owners
        inode = self.disk.create(directory, name, mode, path, "", owner)
        return self._descriptors.open(inode.number, path, flags, False, 0)

    def _open_found(
        self, inode: Inode, path: str, flags: OpenFlags, given: object, asks_directory: bool, /
    ) -> int:
        """Open what exists; ``given`` is the path as the program gave it."""
        is_directory = bool(inode.parent)
        if flags.create and flags.exclusive:
            raise os_error(errno.EEXIST, given)
        if is_directory:
            if not flags.takes_directory:
                raise os_error(errno.EISDIR, given)
        elif asks_directory:
            raise os_error(errno.ENOTDIR, given)
        if inode.link_text:
            raise os_error(errno.ELOOP, given)
        if not self._trusted:
            self._check_access(inode, flags, given)
        disk = self.disk
        if flags.truncate:
            disk.resize(disk.cache.own(inode.number), 0, path)
        errors = disk.sync_errors.get(inode.number, 0) if disk.sync_errors else 0
        return self._descriptors.open(inode.number, path, flags, is_directory, errors)

    def _check_access(self, inode: Inode, flags: OpenFlags, given: object) -> None:
        if not self._identity.may(inode, flags.wanted):
            raise os_error(errno.EACCES, given)
        if flags.no_access_time and not self._identity.owns(inode):
            raise os_error(errno.EPERM, given)

    def _open_unnamed(
        self, walk: Walk, name: PathName, start: Inode, flags: OpenFlags, mode: int
    ) -> int:
        """Make a file without a name, by ``O_TMPFILE``."""
        directory = walk.resolve(name, start, follow=flags.follow)
        if not directory.is_directory:
            raise os_error(errno.ENOTDIR, walk.path)
        if not self._identity.may(directory, WRITE | SEARCH):
            raise os_error(errno.EACCES, walk.path)
        return self._open_new(self._own(directory), "", name.text, flags, mode)
