"""``os.DirEntry`` and the iterator of ``scandir``, over the simulated disk."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import AnyStr, Generic, NoReturn, Protocol

from sim.disk.cache.inode import Inode
from sim.disk.calls.path_name import FileDescriptorOrPath


class _Stat(Protocol):
    def stat(
        self,
        path: FileDescriptorOrPath,
        *,
        dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> os.stat_result: ...


class DirectoryEntry(Generic[AnyStr]):
    """One entry of a directory: its type when it was listed, its ``stat`` at the first call."""

    __slots__ = ("_dir_fd", "_inode", "_process", "_stats", "_type", "name", "path")

    def __init__(
        self,
        process: _Stat,
        name: AnyStr,
        path: AnyStr,
        inode: Inode,
        dir_fd: int | None = None,
    ) -> None:
        self.name: AnyStr = name
        self.path: AnyStr = path
        self._process = process
        self._inode = inode
        self._type = stat.S_IFMT(inode.mode)
        self._dir_fd = dir_fd
        self._stats: dict[bool, os.stat_result] = {}

    def __fspath__(self) -> AnyStr:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle 'posix.DirEntry' object")

    def inode(self) -> int:
        """Return the inode number of the entry itself."""
        return self._inode.st_ino

    def is_symlink(self) -> bool:
        return self._type == stat.S_IFLNK

    def is_junction(self) -> bool:
        """Return False: junctions exist on Windows only."""
        return False

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._is(stat.S_IFDIR, follow=follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self._is(stat.S_IFREG, follow=follow_symlinks)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return the attributes of the entry, cached by the first call."""
        follow = follow_symlinks and self.is_symlink()
        if follow not in self._stats:
            self._stats[follow] = self._process.stat(
                self.path, dir_fd=self._dir_fd, follow_symlinks=follow
            )
        return self._stats[follow]

    def _is(self, kind: int, *, follow: bool) -> bool:
        if not (follow and self.is_symlink()):
            return self._type == kind
        try:
            return stat.S_IFMT(self.stat().st_mode) == kind
        except FileNotFoundError:
            return False


class DirectoryEntries(Iterator[DirectoryEntry[AnyStr]]):
    """The iterator of ``scandir``, and its context manager."""

    def __init__(self, entries: Iterable[DirectoryEntry[AnyStr]]) -> None:
        self._entries: Iterator[DirectoryEntry[AnyStr]] = iter(list(entries))
        self._is_open = True

    def __next__(self) -> DirectoryEntry[AnyStr]:
        for entry in self._entries:
            return entry
        self._is_open = False
        raise StopIteration

    def __del__(self) -> None:
        if self._is_open:
            message = f"unclosed scandir iterator {self!r}"
            warnings.warn(message, ResourceWarning, stacklevel=1, source=self)

    def __enter__(self) -> DirectoryEntries[AnyStr]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Yield nothing more."""
        self._entries = iter(())
        self._is_open = False
