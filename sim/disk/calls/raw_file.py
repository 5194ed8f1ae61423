"""An unbuffered binary file on a simulated disk: ``io.FileIO`` over a process."""

from __future__ import annotations

import errno
import io
import os
import warnings
from collections.abc import Callable
from functools import lru_cache
from inspect import currentframe
from operator import index
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Protocol

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.calls.arguments import INT_MAX, read_write_buffer, readable_view
from sim.disk.calls.interpreter import (
    CANNOT_PICKLE,
    MODE_OF_WB_PLUS,
    PICKLED_FILE_IO,
    SHOWS_DERIVED_CLASS,
)
from sim.disk.calls.path_name import FileDescriptorOrPath, StrOrBytesPath
from sim.disk.os_error import os_error
from sim.errors import PowerOff

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
# The function by which numpy decides whether C code may use the descriptor of a file. For others it
# makes the calls of the file object.
_NUMPY_ASKS: Final = "isfileobj"
_CLOSED: Final = "I/O operation on closed file"
_NO_ACCESS: Final = "Must have exactly one of create/read/write/append mode and at most one plus"


class FileMode(NamedTuple):
    """A mode of ``io.FileIO``, decoded; ``flags`` are those of ``open``."""

    access: str
    updates: bool
    readable: bool
    writable: bool
    flags: int


@lru_cache(maxsize=64)
def _decoded(mode: str) -> FileMode:
    """Decode a mode; ``ValueError`` as ``io.FileIO`` raises it, at the first wrong letter."""
    access, updates = "", False
    for letter in mode:
        if letter not in _FLAGS and letter not in "b+":
            raise ValueError(f"invalid mode: {mode}")
        if (letter in _FLAGS and access) or (letter == "+" and updates):
            raise ValueError(_NO_ACCESS)
        access = letter if letter in _FLAGS else access
        updates = updates or letter == "+"
    if not access:
        raise ValueError(_NO_ACCESS)
    writes = access != "r"
    way = os.O_RDWR if updates else os.O_WRONLY if writes else os.O_RDONLY
    flags = way | _FLAGS[access] | os.O_CLOEXEC
    return FileMode(access, updates, updates or not writes, updates or writes, flags)


class FileProcess(Protocol):
    """The calls of ``Process`` that a file object makes."""

    @property
    def poisoned(self) -> bool: ...
    def open(self, path: StrOrBytesPath, flags: int, mode: int = 0o777) -> int: ...
    def close(self, fd: int) -> None: ...
    def read(self, fd: int, length: int, /) -> bytes: ...
    def write(self, fd: int, data: ReadableBuffer, /) -> int: ...
    def lseek(self, fd: int, position: int, whence: int, /) -> int: ...
    def ftruncate(self, fd: int, length: int, /) -> None: ...
    def is_directory(self, fd: int) -> bool: ...


class RawFile(io.RawIOBase):
    """One file object and its descriptor.

    ``mode`` is one of ``r``, ``w``, ``x`` and ``a``, with ``+`` or without. ``name`` is the path
    or the descriptor that it was opened with, ``way`` the decoded mode. A buffer above a raw file
    keeps it open.
    """

    name: FileDescriptorOrPath
    # Below 0 if the file is closed, or was never open.
    _descriptor = -1
    _collected = False
    _finalizing = False
    _owns_descriptor = False

    def __init__(
        self,
        process: FileProcess,
        file: FileDescriptorOrPath,
        mode: str = "r",
        *,
        closefd: bool = True,
        opener: Opener | None = None,
    ) -> None:
        self._process = process
        self.way = _decoded(mode)
        self.name = file
        self._descriptor = self._opened(file, closefd=closefd, opener=opener)
        self._check(opener)
        self._owns_descriptor = closefd

    def _opened(self, file: Any, *, closefd: bool, opener: Opener | None) -> int:
        """Return the descriptor to use, in the order of checks of ``io.FileIO``."""
        if type(file) is not str and hasattr(type(file), "__index__"):
            descriptor = int(index(file))
            if abs(descriptor) > INT_MAX:
                kind = type(file).__name__
                raise TypeError(f"expected str, bytes or os.PathLike object, not {kind}")
            if descriptor < 0:
                raise ValueError("negative file descriptor")
            return descriptor
        if "\0" in file if type(file) is str else b"\0" in os.fsencode(file):
            raise ValueError("embedded null byte")
        if not closefd:
            raise ValueError("Cannot use closefd=False with file name")
        flags = self.way.flags
        if opener is None:
            return self._process.open(file, flags, _PERMISSIONS)
        opened: object = opener(file, flags)
        if not isinstance(opened, int):
            raise TypeError("expected integer from opener")
        if opened < 0:
            raise ValueError(f"opener returned {opened}")
        return opened

    def _check(self, opener: Opener | None) -> None:
        """Refuse a directory, and move to the end of a file that is appended to."""
        process, descriptor, access = self._process, self._descriptor, self.way.access
        # A path that is opened for writing is not a directory: ``open(2)`` would have failed.
        may_be_directory = access == "r" or opener is not None or type(self.name) is not str
        if may_be_directory and process.is_directory(descriptor):
            if not isinstance(self.name, int):
                process.close(descriptor)
            raise os_error(errno.EISDIR, self.name)
        if access == "a":
            process.lseek(descriptor, 0, os.SEEK_END)

    def __repr__(self) -> str:
        if self.closed:
            return f"<{self._kind} [closed]>"
        shown = f"name={self.name!r}" if hasattr(self, "name") else f"fd={self._descriptor}"
        return f"<{self._kind} {shown} mode={self.mode!r} closefd={self.closefd}>"

    @property
    def _kind(self) -> str:
        """The name of the class as ``repr`` shows it."""
        is_own = self._is_own_class or not SHOWS_DERIVED_CLASS
        return "_io.FileIO" if is_own else type(self).__qualname__

    @property
    def _is_own_class(self) -> bool:
        """Whether a program sees the class as ``io.FileIO``, and not as one derived from it."""
        kind = type(self)
        return kind is RawFile or kind.__module__ == "_io"

    if not TYPE_CHECKING:  # with it, mypy would accept every attribute

        def __getattr__(self, name: str) -> NoReturn:
            shown = "_io.FileIO" if self._is_own_class else type(self).__name__
            raise AttributeError(f"'{shown}' object has no attribute '{name}'", name=name, obj=self)

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        name = PICKLED_FILE_IO if self._is_own_class else type(self).__name__
        raise TypeError(f"cannot pickle '{name}' {CANNOT_PICKLE}")

    # -- properties ------------------------------------------------------------------------

    @property
    def mode(self) -> str:
        """The mode as ``io.FileIO`` shows it."""
        access, updates = self.way[:2]
        if not updates:
            return f"{access}b"
        return MODE_OF_WB_PLUS if access == "w" else f"{access}b+"

    @property
    def closefd(self) -> bool:
        """Whether closing this object closes the descriptor."""
        return self._owns_descriptor

    @property
    def closed(self) -> bool:
        """Whether the file is closed. That of ``io.RawIOBase`` would look for an attribute."""
        return self._descriptor < 0

    @property
    def _blksize(self) -> int:
        """The ``st_blksize`` of the file, in bytes."""
        return BLOCK_BYTES

    def readable(self) -> bool:
        if self.closed:
            raise ValueError(_CLOSED)
        return self.way.readable

    def writable(self) -> bool:
        if self.closed:
            raise ValueError(_CLOSED)
        return self.way.writable

    def seekable(self) -> bool:
        self._must_be_open()
        return True

    def fileno(self) -> int:
        if self.closed:
            raise ValueError(_CLOSED)
        frame = currentframe()
        caller = frame.f_back if frame is not None else None
        if caller is not None and caller.f_code.co_name == _NUMPY_ASKS:
            raise io.UnsupportedOperation("C code cannot use a descriptor of the simulated disk")
        return self._descriptor

    def isatty(self) -> bool:
        self._must_be_open()
        return False

    # -- calls -----------------------------------------------------------------------------

    def read(self, size: int | None = -1, /) -> bytes:
        """Read up to ``size`` bytes; to the end of the file if that is None or negative."""
        if size is None:
            size = -1
        elif not hasattr(type(size), "__index__"):
            kind = type(size).__name__
            raise TypeError(f"argument should be integer or None, not '{kind}'")
        if not self.readable():
            raise io.UnsupportedOperation("File not open for reading")
        data = super().read(size)
        assert data is not None
        return data

    def readall(self) -> bytes:
        """Read to the end; the descriptor, not the mode, decides whether that is possible."""
        self._must_be_open()
        pieces: list[bytes] = []
        while piece := self._process.read(self._descriptor, io.DEFAULT_BUFFER_SIZE):
            pieces.append(piece)
        return b"".join(pieces)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read into ``buffer``; return the number of bytes."""
        view = read_write_buffer(buffer, "readinto")
        if not self.readable():
            raise io.UnsupportedOperation("File not open for reading")
        data = self._process.read(self._descriptor, view.nbytes)
        view[: len(data)] = data
        return len(data)

    def write(self, data: ReadableBuffer, /) -> int:
        """Write ``data``; return the number of bytes that were written."""
        if self.closed or not self.way.writable:
            readable_view(data)
        if not self.writable():
            raise io.UnsupportedOperation("File not open for writing")
        try:
            return self._process.write(self._descriptor, data)
        except PowerOff:
            if self._is_discarded():
                return memoryview(data).nbytes
            raise

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if self.closed:
            raise ValueError(_CLOSED)
        try:
            return self._process.lseek(self._descriptor, offset, whence)
        except PowerOff:
            if self._is_discarded():
                return 0
            raise

    def truncate(self, size: int | None = None, /) -> int:
        if not self.writable():
            raise io.UnsupportedOperation("File not open for writing")
        size = self.tell() if size is None else size
        self._process.ftruncate(self._descriptor, size)
        return size

    def close(self) -> None:
        """Close the descriptor, if this object owns it."""
        if self.closed:
            return
        if self._finalizing:
            self._dealloc_warn(self, stacklevel=3)
        try:
            super().close()
        finally:
            descriptor, self._descriptor = self._descriptor, -1
            if self._owns_descriptor:
                self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        try:
            self._process.close(descriptor)
        except PowerOff:
            if not self._is_discarded():
                raise

    # -- garbage collection ----------------------------------------------------------------

    def _dealloc_warn(self, source: object, *, stacklevel: int = 2) -> None:
        """Warn that ``source`` was not closed, unless its process is dead.

        The buffers of ``io`` call this method of their raw file when they are collected, before
        they flush and close themselves.
        """
        self._collected = True
        if self._owns_descriptor and not self._process.poisoned:
            message = f"unclosed file {source!r}"
            warnings.warn(message, ResourceWarning, stacklevel=stacklevel, source=source)

    def _is_discarded(self) -> bool:
        """Return whether the file is being collected after the death of its process."""
        if not self._process.poisoned:
            return False
        return self._collected or self._finalizing

    def _must_be_open(self) -> None:
        if self.closed:
            raise ValueError(_CLOSED)
