"""The calls that read directories and links, and that set the current directory.

Names come in an order that is always the same and is not sorted, so that a program that relies
on sorted names fails here.
"""

from __future__ import annotations

import errno
import os
from functools import lru_cache
from typing import TYPE_CHECKING, overload
from zlib import crc32

from sim.disk.cache.inode import ROOT, Inode
from sim.disk.calls.arguments import directory_descriptor, file_descriptor
from sim.disk.calls.directory_entry import DirectoryEntries, DirectoryEntry
from sim.disk.calls.path_name import (
    FileDescriptorOrPath,
    PathName,
    StrOrBytesPath,
    optional_path_or_descriptor,
    path_name,
    path_or_descriptor,
)
from sim.disk.calls.permissions import READ
from sim.disk.calls.stat_calls import StatCalls
from sim.disk.os_error import os_error

if TYPE_CHECKING:
    from _typeshed import HasFileno

BytesPath = bytes | os.PathLike[bytes]


class DirectoryCalls(StatCalls):
    """Calls on directories, the current one among them, and ``readlink``."""

    __slots__ = ()

    @overload
    def listdir(self, path: str | int | os.PathLike[str] | None = None) -> list[str]: ...
    @overload
    def listdir(self, path: BytesPath) -> list[bytes]: ...
    def listdir(self, path: FileDescriptorOrPath | None = None) -> list[str] | list[bytes]:
        """Return the names in a directory, without ``.`` and ``..``."""
        where = optional_path_or_descriptor(path, "listdir")
        names = _names(self._listed(where, path))
        return [os.fsencode(name) for name in names] if _is_bytes(path) else names

    @overload
    def scandir(
        self, path: str | int | os.PathLike[str] | None = None
    ) -> DirectoryEntries[str]: ...
    @overload
    def scandir(self, path: BytesPath) -> DirectoryEntries[bytes]: ...
    def scandir(
        self, path: FileDescriptorOrPath | None = None
    ) -> DirectoryEntries[str] | DirectoryEntries[bytes]:
        """Return an iterator over the entries that a directory has now."""
        where = optional_path_or_descriptor(path, "scandir")
        directory = self._listed(where, path)
        found = [(name, self._cache[directory.entries[name]]) for name in _names(directory)]
        if isinstance(where, int):
            return DirectoryEntries(
                DirectoryEntry(self, name, name, inode, where) for name, inode in found
            )
        above = where.text
        entries = [(name, os.path.join(above, name), inode) for name, inode in found]
        if _is_bytes(path):
            return DirectoryEntries(
                DirectoryEntry(self, os.fsencode(name), os.fsencode(full), inode)
                for name, full, inode in entries
            )
        return DirectoryEntries(DirectoryEntry(self, *entry) for entry in entries)

    @overload
    def readlink(self, path: str | os.PathLike[str], *, dir_fd: int | None = None) -> str: ...
    @overload
    def readlink(self, path: BytesPath, *, dir_fd: int | None = None) -> bytes: ...
    def readlink(self, path: StrOrBytesPath, *, dir_fd: int | None = None) -> str | bytes:
        """Return the path that a symbolic link holds."""
        name, directory_fd = path_name(path, "readlink"), directory_descriptor(dir_fd)
        if not name.text and directory_fd is not None:
            # readlinkat(2) takes an empty path (LOOKUP_EMPTY), and looks at the descriptor.
            self._file(directory_fd, path=path)
        inode = self._resolve(name, directory_fd, path, follow=False)
        if not inode.link_text:
            raise os_error(errno.EINVAL, path)
        return os.fsencode(inode.link_text) if _is_bytes(path) else inode.link_text

    # -- the current directory -------------------------------------------------------------

    def chdir(self, path: FileDescriptorOrPath) -> None:
        """Make a directory the one that relative paths start from."""
        self._enter(self._find(path_or_descriptor(path, "chdir"), None, path), path)

    def fchdir(self, fd: int | HasFileno) -> None:
        """Make an open directory the one that relative paths start from."""
        self._enter(self._cache[self._file(fd, file_descriptor).number])

    def getcwd(self) -> str:
        """Return the absolute path of the current directory."""
        self._must_live()
        names: list[str] = []
        number = self._working_directory
        while number != ROOT:
            directory = self._cache[number]
            if not directory.is_linked:
                raise os_error(errno.ENOENT)
            parent = self._cache[directory.parent]
            names += [name for name, entry in parent.entries.items() if entry == number]
            number = parent.number
        return "/" + "/".join(reversed(names))

    def getcwdb(self) -> bytes:
        """Return the absolute path of the current directory."""
        return os.fsencode(self.getcwd())

    # -- shared ----------------------------------------------------------------------------

    def _enter(self, directory: Inode, path: object = None) -> None:
        if not directory.is_directory:
            raise os_error(errno.ENOTDIR, path)
        if not self._identity.may_search(directory):
            raise os_error(errno.EACCES, path)
        self._working_directory = directory.number
        self._dentries.clear()

    def _listed(self, where: PathName | int, path: object) -> Inode:
        """Return a directory that this process may read."""
        if isinstance(where, int):
            self._file(where)  # an error of the descriptor itself names no file
        directory = self._find(where, None, path)
        if not directory.is_directory:
            raise os_error(errno.ENOTDIR, path)
        # A descriptor was checked when it was opened.
        is_checked = self._trusted or isinstance(where, int)
        if not (is_checked or self._identity.may(directory, READ)):
            raise os_error(errno.EACCES, path)
        return directory


def _is_bytes(path: object) -> bool:
    """Return whether names beside ``path`` are given as bytes."""
    if isinstance(path, str):
        return False
    path = os.fspath(path) if isinstance(path, os.PathLike) else path
    return isinstance(path, bytes | bytearray | memoryview)


def _names(directory: Inode) -> list[str]:
    return sorted(directory.entries, key=_rank)


@lru_cache(maxsize=8192)
def _rank(name: str) -> str:
    # One string, which sorts faster than a pair.
    return f"{crc32(os.fsencode(name)):08x}{name}"
