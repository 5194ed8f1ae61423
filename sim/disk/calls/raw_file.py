"""An unbuffered binary file over a process: what ``io.FileIO`` is over a real descriptor."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

from sim.disk.calls.path_name import FileDescriptorOrPath, StrOrBytesPath
from sim.disk.os_error import os_error

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

Opener = Callable[[Any, int], int]

_PERMISSIONS: Final = 0o666
_FLAGS: Final = {
    "r": 0,
    "w": os.O_CREAT | os.O_TRUNC,
    "x": os.O_CREAT | os.O_EXCL,
    "a": os.O_CREAT | os.O_APPEND,
}


class Calls(Protocol):
    """What a file object needs of its process. ``sim.disk.calls.process.Process`` has it."""

    @property
    def poisoned(self) -> bool: ...
    def open(self, path: StrOrBytesPath, flags: int, mode: int = 0o777) -> int: ...
    def close(self, fd: int) -> None: ...
    def read(self, fd: int, length: int, /) -> bytes: ...
    def write(self, fd: int, data: ReadableBuffer, /) -> int: ...
    def lseek(self, fd: int, position: int, how: int, /) -> int: ...
    def ftruncate(self, fd: int, length: int, /) -> None: ...
    def fstat(self, fd: int) -> os.stat_result: ...


class RawFile(io.RawIOBase):
    """One file object and its descriptor.

    ``mode`` is one of ``r``, ``w``, ``x`` and ``a``, with ``+`` or without. A buffer above
    it keeps it open; ``name`` is what it was opened by.
    """

    name: FileDescriptorOrPath

    def __init__(
        self,
        process: Calls,
        file: FileDescriptorOrPath,
        mode: str = "r",
        *,
        closefd: bool = True,
        opener: Opener | None = None,
    ) -> None:
        self._handle = process
        self._collected = False
        self._owns_descriptor = False
        self._updates = "+" in mode
        self._kind = next(letter for letter in mode if letter in _FLAGS)
        self.name = file
        self._descriptor = self._opened(file, closefd=closefd, opener=opener)
        self._check()
        self._owns_descriptor = closefd

    def _opened(self, file: FileDescriptorOrPath, *, closefd: bool, opener: Opener | None) -> int:
        if isinstance(file, int):
            return file
        if not closefd:
            raise ValueError("Cannot use closefd=False with file name")
        access = os.O_RDWR if self._updates else os.O_WRONLY if self.writable() else os.O_RDONLY
        flags = access | _FLAGS[self._kind] | os.O_CLOEXEC
        if opener is None:
            return self._handle.open(file, flags, _PERMISSIONS)
        descriptor = opener(file, flags)
        if descriptor < 0:
            raise ValueError(f"opener returned {descriptor}")
        return descriptor

    def _check(self) -> None:
        """Refuse a directory, and go where the mode says."""
        process, descriptor = self._handle, self._descriptor
        if stat.S_ISDIR(process.fstat(descriptor).st_mode):
            if not isinstance(self.name, int):
                process.close(descriptor)
            raise os_error(errno.EISDIR, self.name)
        if self._kind == "a":
            process.lseek(descriptor, 0, os.SEEK_END)

    # -- what it can do --------------------------------------------------------------------

    @property
    def mode(self) -> str:
        """The mode as ``io.FileIO`` shows it."""
        if not self._updates:
            return f"{self._kind}b"
        return "rb+" if self._kind == "w" else f"{self._kind}b+"

    @property
    def closefd(self) -> bool:
        """Whether closing this object closes the descriptor."""
        return self._owns_descriptor

    def readable(self) -> bool:
        self._must_be_open()
        return self._updates or self._kind == "r"

    def writable(self) -> bool:
        self._must_be_open()
        return self._updates or self._kind != "r"

    def seekable(self) -> bool:
        self._must_be_open()
        return True

    def fileno(self) -> int:
        self._must_be_open()
        return self._descriptor

    # -- what it does ----------------------------------------------------------------------

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read into ``buffer``; return how many bytes came."""
        if not self.readable():
            raise io.UnsupportedOperation("File not open for reading")
        view = memoryview(buffer).cast("B")
        data = self._handle.read(self._descriptor, view.nbytes)
        view[: len(data)] = data
        return len(data)

    def write(self, data: ReadableBuffer, /) -> int:
        """Write ``data``; return how many bytes were taken."""
        if not self.writable():
            raise io.UnsupportedOperation("File not open for writing")
        if self._vanishes():
            return memoryview(data).nbytes
        return self._handle.write(self._descriptor, data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._must_be_open()
        return 0 if self._vanishes() else self._handle.lseek(self._descriptor, offset, whence)

    def truncate(self, size: int | None = None, /) -> int:
        if not self.writable():
            raise io.UnsupportedOperation("File not open for writing")
        size = self.tell() if size is None else size
        self._handle.ftruncate(self._descriptor, size)
        return size

    def close(self) -> None:
        """Close the descriptor, if this object owns it."""
        if self.closed:
            return
        super().close()
        if self._owns_descriptor and not self._vanishes():
            self._handle.close(self._descriptor)

    # -- the end ---------------------------------------------------------------------------

    def _dealloc_warn(self, _source: object) -> None:
        """Take note that a buffer above is being collected; it closes itself next.

        The buffers of ``io`` call this method of their raw file, and nothing else tells a
        ``close`` of the collector from one of the program.
        """
        self._collected = True

    def _vanishes(self) -> bool:
        """Say whether the process is dead and nobody is there to be told."""
        if not self._handle.poisoned:
            return False
        return self._collected or bool(getattr(self, "_finalizing", False))

    def _must_be_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")
