"""Stand-ins for the modules ``os``, ``os.path`` and ``fcntl``, over one process.

A program that takes its ``os`` and its ``open`` as parameters runs on the simulated disk
unchanged: pass it ``OsModule(process)`` and ``process.open_file``. Names that concern no disk
come from the real module. Names that could reach the real disk or the real process are refused
with ``UnsupportedOperation``.
"""

from __future__ import annotations

import fcntl
import os
import posixpath
import stat
from typing import IO, TYPE_CHECKING, Any, Final

from sim.disk.calls.path_name import FileDescriptorOrPath, StrOrBytesPath
from sim.disk.calls.process import Process
from sim.errors import UnsupportedOperation

if TYPE_CHECKING:
    from _typeshed import HasFileno

_PURE: Final = frozenset(
    {
        "DirEntry", "PathLike", "altsep", "curdir", "devnull", "error", "extsep", "fsdecode",
        "fsencode", "fspath", "linesep", "name", "pardir", "pathsep", "sep", "stat_result",
        "statvfs_result", "strerror",
    }
)  # fmt: skip
_PURE_PATH: Final = frozenset(
    {
        "basename", "commonpath", "commonprefix", "dirname", "isabs", "join", "normcase",
        "normpath", "sep", "split", "splitdrive", "splitext",
    }
)  # fmt: skip


class OsModule:
    """The module ``os`` of a program on the simulated disk."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.path = PathModule(process)

    def fdopen(self, fd: int, *arguments: Any, **named: Any) -> IO[Any]:
        """Return a file object over a descriptor, as ``os.fdopen`` does."""
        if not isinstance(fd, int):
            raise TypeError(f"invalid fd type ({type(fd)}, expected integer)")
        return self._process.open_file(fd, *arguments, **named)

    def __getattr__(self, name: str) -> Any:
        if name in _PURE or name.isupper():
            return getattr(os, name)
        return getattr(self._process, name)


class PathModule:
    """The module ``os.path``: functions on text come from the real one, the others are here."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def exists(self, path: FileDescriptorOrPath) -> bool:
        return self._mode(path) is not None

    def lexists(self, path: StrOrBytesPath) -> bool:
        return self._mode(path, follow=False) is not None

    def isdir(self, path: FileDescriptorOrPath) -> bool:
        return stat.S_ISDIR(self._mode(path) or 0)

    def isfile(self, path: FileDescriptorOrPath) -> bool:
        return stat.S_ISREG(self._mode(path) or 0)

    def islink(self, path: StrOrBytesPath) -> bool:
        return stat.S_ISLNK(self._mode(path, follow=False) or 0)

    def getsize(self, path: FileDescriptorOrPath) -> int:
        return self._process.stat(path).st_size

    def getmtime(self, path: FileDescriptorOrPath) -> float:
        return self._process.stat(path).st_mtime

    def samefile(self, path: FileDescriptorOrPath, other: FileDescriptorOrPath) -> bool:
        return os.path.samestat(self._process.stat(path), self._process.stat(other))

    def abspath(self, path: str | os.PathLike[str]) -> str:
        return posixpath.normpath(posixpath.join(self._process.getcwd(), path))

    def _mode(self, path: FileDescriptorOrPath, *, follow: bool = True) -> int | None:
        """Return the mode of a file; None if there is none, or if the path is malformed."""
        try:
            return self._process.stat(path, follow_symlinks=follow).st_mode
        except (OSError, ValueError):
            return None

    def __getattr__(self, name: str) -> Any:
        if name in _PURE_PATH or name not in posixpath.__all__:
            return getattr(posixpath, name)
        raise UnsupportedOperation(f"os.path.{name} is not modelled by the simulated disk")


class FcntlModule:
    """The two functions of the module ``fcntl`` that lock files, and their constants."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def flock(self, fd: int | HasFileno, operation: int, /) -> None:
        """Take or release the lock of an open file description."""
        self._process.flock(fd, operation)

    def lockf(
        self,
        fd: int | HasFileno,
        cmd: int,
        len: int = 0,
        start: int = 0,
        whence: int = 0,
        /,
    ) -> None:
        """Take or release a record lock of the process."""
        self._process.record_lock(fd, cmd, len, start, whence)

    def __getattr__(self, name: str) -> Any:
        if name.isupper():
            return getattr(fcntl, name)
        raise UnsupportedOperation(f"fcntl.{name} is not modelled by the simulated disk")
