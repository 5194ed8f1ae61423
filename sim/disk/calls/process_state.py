"""The state of one process: identity, current directory, descriptors; and how paths resolve.

The groups of system calls (``open_call``, ``name_calls``, ``content_calls``, ...) are base classes
over ``ProcessState``, and ``process.py`` combines them. Inheritance is used here, against the
habit of this code base, because ``os`` is one flat module of some seventy functions, and a
delegating method for each would cost as much as the call itself.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

from sim.disk.cache.inode import ROOT, Inode
from sim.disk.calls.arguments import c_int
from sim.disk.calls.descriptor import FIRST_DESCRIPTOR, DescriptorTable, OpenFile
from sim.disk.calls.interpreter import NO_DESCRIPTOR
from sim.disk.calls.path_name import PathName, is_too_long
from sim.disk.calls.path_walk import Walk
from sim.disk.calls.permissions import SEARCH, WRITE, Identity
from sim.disk.disk import DEAD, Disk
from sim.disk.os_error import os_error
from sim.errors import PowerOff

if TYPE_CHECKING:
    from _typeshed import HasFileno

_PERMISSION_BITS: Final = 0o7777


class _Power(Protocol):
    off: bool


class _Killed:
    """The power of a killed process: off, while the machine runs on."""

    off = True


class ProcessState:
    """One process on a disk, which is alive until ``poisoned``."""

    __slots__ = (
        "_cache", "_dentries", "_descriptors", "_files", "_identity", "_power", "_trusted",
        "_unmasked", "_working_directory", "disk",
    )  # fmt: skip

    def __init__(
        self,
        disk: Disk,
        umask: int = 0o022,
        uid: int = 0,
        gid: int = 0,
        groups: Iterable[int] = (),
        descriptor_limit: int = 1024,
    ) -> None:
        self.disk = disk
        self._cache = disk.cache
        self._power: _Power = disk
        self._unmasked = _PERMISSION_BITS & ~(umask & 0o777)
        self._identity = Identity(uid, gid, frozenset(groups))
        self._trusted = uid == 0
        self._descriptors = DescriptorTable(descriptor_limit)
        self._files = self._descriptors.files
        self._working_directory = ROOT
        # Where a path leads, by ``PathName.head``. Only a process of root fills it: for any other,
        # permissions may have changed since.
        self._dentries: dict[str, Inode] = {}
        disk.cache.path_caches += (self._dentries,)

    @property
    def poisoned(self) -> bool:
        """Whether every further call raises ``PowerOff``."""
        return self._power.off

    @property
    def open_descriptors(self) -> tuple[int, ...]:
        """The numbers of its descriptors, in the order in which they were opened."""
        return tuple(self._files)

    def poison(self) -> None:
        """Kill this process: its descriptors and locks are gone, its data is not.

        The disk and the other processes on it continue.
        """
        for descriptor in list(self._files):
            file = self._descriptors.remove(descriptor)
            if file is not None:
                self._forget_locks(file)
        self._power = _Killed()

    def use_descriptors_from(self, first: int) -> None:
        """Number descriptors from ``first`` on; without effect if one is open or was chosen."""
        descriptors = self._descriptors
        if not descriptors.files and descriptors.first == FIRST_DESCRIPTOR:
            descriptors.renumber(first)

    def umask(self, mask: int, /) -> int:
        """Set the file mode creation mask; return the previous one."""
        mask = c_int(mask)
        self._must_live()
        previous, self._unmasked = self._unmasked, _PERMISSION_BITS & ~(mask & 0o777)
        return _PERMISSION_BITS & ~previous

    # -- descriptors -----------------------------------------------------------------------

    def _must_live(self) -> None:
        if self._power.off:
            raise PowerOff(DEAD)

    def _file(
        self,
        descriptor: int | HasFileno,
        convert: Callable[[Any], int] = c_int,
        path: object = None,
    ) -> OpenFile:
        """Return the open file description of a descriptor; EBADF if there is none.

        ``convert`` is the conversion of the argument; the number of an open file needs none.
        """
        file = self._files.get(descriptor) if type(descriptor) is int else None
        if file is None or self._power.off:
            number = convert(descriptor)
            self._must_live()
            file = self._files.get(number)
            if file is None:
                raise os_error(errno.EBADF, path)
        return file

    def _forget_locks(self, file: OpenFile) -> None:
        """Release the locks that end when one descriptor of ``file`` is closed."""
        locks = self.disk.locks
        locks.forget_records(file.number, self)
        if file not in self._files.values():
            locks.forget_description(file.number, file)

    def is_directory(self, fd: int) -> bool:
        """Return whether a descriptor is one of a directory."""
        return self._file(fd).is_directory

    def path_of(self, fd: int) -> str:
        """Return the path with which a descriptor was opened."""
        return self._file(fd).path

    def description_of(self, fd: int) -> OpenFile:
        """Return the open file description of a descriptor, which a mapping keeps open."""
        return self._file(fd)

    # -- paths -----------------------------------------------------------------------------

    def _parent(
        self, name: PathName, dir_fd: int | None, path: object, path2: object = None
    ) -> Inode:
        """Return the directory that holds the last component of ``name``.

        ``path`` and ``path2`` are the paths of the call as the program gave them, for errors.
        """
        if self._power.off:
            raise PowerOff(DEAD)
        head = name.head
        if dir_fd is None and head is not None:
            known = self._dentries.get(head)
            if known is not None:
                return known
        walk = self._walk(path, path2)
        directory = walk.parent(name, self._start(name, dir_fd, path, path2))
        if dir_fd is None and head is not None and self._trusted and not walk.links:
            directory = self._dentries[head] = self._cache.own(directory.number)
        return directory

    def _resolve(
        self,
        name: PathName,
        dir_fd: int | None,
        path: object,
        path2: object = None,
        *,
        follow: bool = True,
    ) -> Inode:
        """Return the inode that ``name`` refers to, for reading.

        Without ``follow``, a symbolic link at the end is returned itself.
        """
        if name.head is None:
            self._must_live()
        else:
            number = self._parent(name, dir_fd, path, path2).entries.get(name.last)
            if number is None:
                raise os_error(errno.ENOENT, path, path2)
            inode = self._cache[number]
            if not (inode.link_text and follow):
                return inode
        start = self._start(name, dir_fd, path, path2)
        return self._walk(path, path2).resolve(name, start, follow=follow)

    def _find(
        self, where: PathName | int, dir_fd: int | None, path: object, *, follow: bool = True
    ) -> Inode:
        """Return the inode that a path or a descriptor refers to, for reading."""
        if isinstance(where, PathName):
            return self._resolve(where, dir_fd, path, follow=follow)
        if where == NO_DESCRIPTOR:
            self._must_live()
            raise os_error(errno.EFAULT, path)
        return self._cache[self._file(where, path=path).number]

    def _text(self, where: PathName | int) -> str:
        """Return the path that the journal shows for a call on ``where``, which was found."""
        return where.text if isinstance(where, PathName) else self._files[where].path

    def _start(self, name: PathName, dir_fd: int | None, path: object, path2: object) -> Inode:
        """Return the directory that a path starts from."""
        if name.error:
            raise os_error(name.error, path, path2)
        if name.absolute:
            return self._cache[ROOT]
        if dir_fd is None:
            return self._cache[self._working_directory]
        file = self._files.get(dir_fd)
        if file is None:
            raise os_error(errno.EBADF, path, path2)
        if not file.is_directory:
            raise os_error(errno.ENOTDIR, path, path2)
        return self._cache[file.number]

    def _walk(self, path: object, path2: object = None) -> Walk:
        return Walk(self._cache, self._identity, path, path2)

    def _entry(
        self, directory: Inode, name: str, path: object, path2: object = None
    ) -> Inode | None:
        """Return the inode of a last component, or None; no link is followed."""
        number = directory.entries.get(name)
        if number is not None:
            return self._cache[number]
        return self._walk(path, path2).lookup(directory, name) if is_too_long(name) else None

    # -- permissions -----------------------------------------------------------------------

    def _check_may_change(self, directory: Inode, path: object, path2: object = None) -> None:
        """Raise EACCES unless names may be made in ``directory`` and removed from it."""
        if not (self._trusted or self._identity.may(directory, WRITE | SEARCH)):
            raise os_error(errno.EACCES, path, path2)

    def _drop_privileges(self, inode: Inode, path: str) -> None:
        """Clear the setuid and setgid bits of a file that is about to change.

        Linux does so (``file_remove_privs``) for every process but one of root.
        """
        if self._trusted:
            return
        mode = self._identity.without_privileges(inode)
        if mode != inode.mode:
            self.disk.set_attributes(inode, path, mode=mode)
