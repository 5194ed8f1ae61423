"""What every system call of one process needs: its identity, directory and descriptors.

The rooms of calls (``open_call``, ``name_calls``, ``descriptor_calls``, ...) stand on it, and
``handle.py`` puts them together. They are base classes, against the habit of this house:
some sixty calls on one object, each without a delegating call of its own, is what ``os``
looks like, and the delegation would cost as much as the call.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from stat import S_ISGID
from typing import Any, Final, Protocol

from sim.disk.cache.inode import ROOT, Inode
from sim.disk.calls.descriptor import DescriptorTable, OpenFile
from sim.disk.calls.known_paths import KnownPaths
from sim.disk.calls.path_name import PathName, StrOrBytesPath, path_name, plain_name
from sim.disk.calls.path_walk import Walk
from sim.disk.calls.permissions import SEARCH, WRITE, Identity
from sim.disk.disk import DEAD, Disk
from sim.disk.os_error import os_error
from sim.errors import PowerOff

_KNOWN_PATHS: Final = 4096
_PERMISSION_BITS: Final = 0o7777


class _Power(Protocol):
    off: bool


class _Dead:
    """What a process that was killed sees instead of a running machine."""

    off = True


class ProcessState:
    """One process on a disk. ``poisoned`` tells that it is dead."""

    __slots__ = (
        "_cache", "_descriptors", "_files", "_identity", "_known", "_known_paths", "_owners",
        "_power", "_trusted", "_unmasked", "_working_directory", "disk",
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
        self._owners = uid, gid
        self._trusted = uid == 0
        self._working_directory = ROOT
        self._descriptors = DescriptorTable(descriptor_limit)
        self._files = self._descriptors.files
        self._known_paths = KnownPaths()
        self._known = self._known_paths.places
        disk.cache.path_caches.append(self._known_paths)

    @property
    def poisoned(self) -> bool:
        """Whether every further call raises ``PowerOff``."""
        return self._power.off

    def poison(self) -> None:
        """End this process as a kill does: its descriptors and locks are gone, its data is not.

        The disk, and the other processes on it, go on.
        """
        for descriptor in list(self._files):
            file = self._descriptors.remove(descriptor)
            if file is not None:
                self._forget_locks(file)
        self._power = _Dead()

    def umask(self, mask: int, /) -> int:
        """Set the file mode creation mask; return the one before."""
        self._must_live()
        before, self._unmasked = self._unmasked, _PERMISSION_BITS & ~(mask & 0o777)
        return _PERMISSION_BITS & ~before

    # -- for the rooms of calls ----------------------------------------------------------

    def _must_live(self) -> None:
        if self._power.off:
            raise PowerOff(DEAD)

    def _file(self, descriptor: Any) -> OpenFile:
        """Return the open file description of a descriptor; EBADF if there is none."""
        if self._power.off:
            raise PowerOff(DEAD)
        try:
            return self._files[descriptor]
        except (KeyError, TypeError):  # an unhashable object with fileno()
            return self._file_of(descriptor)

    def _file_of(self, descriptor: object) -> OpenFile:
        """Take a file object for its descriptor, as ``os.fsync`` and ``fcntl`` do."""
        number = descriptor.fileno() if hasattr(descriptor, "fileno") else descriptor
        if not isinstance(number, int):
            kind = type(descriptor).__name__
            raise TypeError(f"argument must be an int, or have a fileno() method, not {kind}")
        file = self._files.get(number)
        if file is None:
            raise os_error(errno.EBADF)
        return file

    def _forget_locks(self, file: OpenFile) -> None:
        """Give up the locks that die with a descriptor of ``file`` that was closed."""
        locks = self.disk.locks
        locks.forget_process(file.number, self)
        if file not in self._files.values():
            locks.forget_description(file.number, file)

    def _inode(self, number: int) -> Inode:
        """Return an inode for reading; the hottest calls look for themselves."""
        cache = self._cache
        return cache.changed.get(number) or cache.base[number]

    def _own(self, inode: Inode) -> Inode:
        """Return the same inode for changing."""
        return self._cache.own(inode.number)

    def _start(self, name: PathName, dir_fd: int | None, path: object, path2: object) -> Inode:
        """Return the directory that a path starts from."""
        if name.absolute:
            return self._inode(ROOT)
        if dir_fd is None:
            return self._inode(self._working_directory)
        file = self._files.get(dir_fd)
        if file is None:
            raise os_error(errno.EBADF, path, path2)
        if not file.is_directory:
            raise os_error(errno.ENOTDIR, path, path2)
        return self._inode(file.number)

    def _learn(self, path: object) -> tuple[Inode, PathName] | None:
        """Return the directory, for changing, that holds the last component of a plain path.

        None sends the caller to ``Walk``, which starts again and knows every case. A path
        that was walked is known until a directory or a link gains or loses a name.
        """
        if type(path) is not str or not self._trusted:
            return None
        name = plain_name(path)
        if name is None:
            return None
        directory = self._known_paths.directories.get(name.head) or self._walked(name)
        if directory is None:
            return None
        if len(self._known) >= _KNOWN_PATHS:
            self._known_paths.clear()
        known = self._known[path] = directory, name
        return known

    def _known_directory(self, path: str) -> int:
        """Return the number of a directory that may be opened, or 0 if that needs care."""
        if path == "/":
            return ROOT if self._trusted else 0
        known = self._known_paths.directories.get(f"{path}/") if path else None
        if known is not None:
            return known.number
        found = self._known.get(path) or self._learn(path)
        if found is None:
            return 0
        directory, name = found
        number = directory.entries.get(name.last, 0)
        return number if number and self._inode(number).parent else 0

    def _known_file(self, path: str) -> Inode | None:
        """Return the inode of a regular file that may be read, None if that needs care."""
        found = self._known.get(path) or self._learn(path)
        if found is None:
            return None
        directory, name = found
        number = directory.entries.get(name.last)
        if number is None:
            return None
        cache = self._cache
        inode = cache.changed.get(number) or cache.base[number]
        return None if inode.parent or inode.link_text else inode

    def _walked(self, name: PathName) -> Inode | None:
        """Return the directory that the parents of a plain path lead to, and remember it."""
        cache = self._cache
        known = self._known.get(name.head[:-1])
        parts = name.parents
        if known is not None:  # somebody has asked for the directory itself
            directory, parts = known[0], parts[-1:]
        else:
            directory = self._inode(ROOT if name.absolute else self._working_directory)
        for part in parts:
            number = directory.entries.get(part)
            if number is None:
                return None
            directory = cache.changed.get(number) or cache.base[number]
        if not directory.parent:
            return None
        directory = self._known_paths.directories[name.head] = cache.own(directory.number)
        return directory

    def _parent(
        self, name: PathName, dir_fd: int | None, path: object, path2: object = None
    ) -> Inode:
        """Return the directory that holds the last component of a path."""
        if dir_fd is None:
            found = self._known.get(name.text) or self._learn(name.text)
            if found is not None:
                return found[0]
        walk = Walk(self.disk.cache, self._identity, path, path2)
        return walk.parent(name, self._start(name, dir_fd, path, path2))

    def _resolve(
        self,
        path: StrOrBytesPath,
        call: str,
        dir_fd: int | None = None,
        path2: object = None,
        *,
        follow: bool = True,
    ) -> Inode:
        """Return the inode that a path means, for reading."""
        if self._power.off:
            raise PowerOff(DEAD)
        if dir_fd is None:
            found = self._known.get(path) or self._learn(path)
            if found is not None:
                directory, name = found
                number = directory.entries.get(name.last)
                if number is None:
                    raise os_error(errno.ENOENT, path, path2)
                cache = self._cache
                inode = cache.changed.get(number) or cache.base[number]
                if not (inode.link_text and follow):
                    return inode
            elif path == "/":
                return self._inode(ROOT)
        name = path_name(path, call)
        walk = Walk(self.disk.cache, self._identity, path, path2)
        return walk.resolve(name, self._start(name, dir_fd, path, path2), follow=follow)

    def _may_change(self, directory: Inode, path: object, path2: object = None) -> None:
        """Raise EACCES unless names may be made in ``directory`` and taken out of it."""
        if not (self._trusted or self._identity.may(directory, WRITE | SEARCH)):
            raise os_error(errno.EACCES, path, path2)

    def _owner(self, directory: Inode) -> tuple[int, int]:
        """Return uid and gid of what this process makes in ``directory`` (inode(7), S_ISGID)."""
        if directory.mode & S_ISGID:
            return self._identity.uid, directory.gid
        return self._owners
