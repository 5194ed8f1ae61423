"""The calls that read directories and links, and move the process about.

Names come in an order that is the same every time and means nothing, so that a program
which takes it for sorted is found out.
"""

from __future__ import annotations

import errno
import os
from functools import lru_cache
from typing import overload
from zlib import crc32

from sim.disk.cache.inode import ROOT, Inode
from sim.disk.calls.attribute_calls import AttributeCalls
from sim.disk.calls.directory_entry import DirectoryEntries, DirectoryEntry
from sim.disk.calls.path_name import FileDescriptorOrPath, StrOrBytesPath
from sim.disk.calls.permissions import READ, SEARCH
from sim.disk.os_error import os_error

BytesPath = bytes | os.PathLike[bytes]


class DirectoryCalls(AttributeCalls):
    """Calls on directories, the current one among them, and ``readlink``."""

    __slots__ = ()

    @overload
    def listdir(self, path: str | int | os.PathLike[str] | None = None) -> list[str]: ...
    @overload
    def listdir(self, path: BytesPath) -> list[bytes]: ...
    def listdir(self, path: FileDescriptorOrPath | None = None) -> list[str] | list[bytes]:
        """Return the names in a directory, without ``.`` and ``..``."""
        names = _names(self._listed(path, "listdir"))
        if type(path) is str:
            return names
        as_bytes = not isinstance(path, int | None) and isinstance(os.fspath(path), bytes)
        return [os.fsencode(name) for name in names] if as_bytes else names

    @overload
    def scandir(
        self, path: str | int | os.PathLike[str] | None = None
    ) -> DirectoryEntries[str]: ...
    @overload
    def scandir(self, path: BytesPath) -> DirectoryEntries[bytes]: ...
    def scandir(
        self, path: FileDescriptorOrPath | None = None
    ) -> DirectoryEntries[str] | DirectoryEntries[bytes]:
        """Return an iterator over the entries of a directory, as they are now."""
        directory = self._listed(path, "scandir")
        found = [(name, self._inode(directory.entries[name])) for name in _names(directory)]
        if isinstance(path, int):
            return DirectoryEntries(
                DirectoryEntry(self, name, name, inode, dir_fd=path) for name, inode in found
            )
        prefix = os.fspath("." if path is None else path)
        if isinstance(prefix, str):
            return DirectoryEntries(
                DirectoryEntry(self, name, os.path.join(prefix, name), inode)
                for name, inode in found
            )
        head = prefix
        return DirectoryEntries(
            DirectoryEntry(self, os.fsencode(name), os.path.join(head, os.fsencode(name)), inode)
            for name, inode in found
        )

    @overload
    def readlink(self, path: str | os.PathLike[str], *, dir_fd: int | None = None) -> str: ...
    @overload
    def readlink(self, path: BytesPath, *, dir_fd: int | None = None) -> bytes: ...
    def readlink(self, path: StrOrBytesPath, *, dir_fd: int | None = None) -> str | bytes:
        """Return what a symbolic link says."""
        inode = self._resolve(path, "readlink", dir_fd, follow=False)
        if not inode.link_text:
            raise os_error(errno.EINVAL, path)
        return (
            os.fsencode(inode.link_text) if isinstance(os.fspath(path), bytes) else inode.link_text
        )

    # -- the current directory -----------------------------------------------------------

    def chdir(self, path: FileDescriptorOrPath) -> None:
        """Make a directory the one that relative paths start from."""
        inode = self._meant(path, "chdir")
        if not inode.is_directory:
            raise os_error(errno.ENOTDIR, path)
        if not self._identity.may(inode, SEARCH):
            raise os_error(errno.EACCES, path)
        self._working_directory = inode.number
        self._known_paths.clear()

    def fchdir(self, fd: int) -> None:
        """Make an open directory the one that relative paths start from."""
        self._file(fd)
        self.chdir(fd)

    def getcwd(self) -> str:
        """Return the absolute path of the current directory."""
        self._must_live()
        names: list[str] = []
        number = self._working_directory
        while number != ROOT:
            directory = self._inode(number)
            if not directory.links:
                raise os_error(errno.ENOENT)
            parent = self._inode(directory.parent)
            names += [name for name, entry in parent.entries.items() if entry == number]
            number = parent.number
        return "/" + "/".join(reversed(names))

    def getcwdb(self) -> bytes:
        """Return the absolute path of the current directory."""
        return os.fsencode(self.getcwd())

    # -- what they have in common --------------------------------------------------------

    def _listed(self, path: FileDescriptorOrPath | None, call: str) -> Inode:
        """Return a directory that this process may read."""
        if isinstance(path, int):
            file = self._file(path)
            if not file.is_directory:
                raise os_error(errno.ENOTDIR, path)
            return self._inode(file.number)
        path = "." if path is None else path
        inode = self._resolve(path, call)
        if not inode.parent:
            raise os_error(errno.ENOTDIR, path)
        if not (self._trusted or self._identity.may(inode, READ)):
            raise os_error(errno.EACCES, path)
        return inode


def _names(directory: Inode) -> list[str]:
    return sorted(directory.entries, key=_rank)


@lru_cache(maxsize=8192)
def _rank(name: str) -> str:
    # As one text, which sorts faster than a pair.
    return f"{crc32(os.fsencode(name)):08x}{name}"
