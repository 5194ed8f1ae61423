"""An unbuffered binary file on a simulated disk: ``io.FileIO`` over a process."""

from __future__ import annotations

import errno
import io
import os
import stat
import warnings
from collections.abc import Callable
from operator import index
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.calls.arguments import INT_MAX, writable_view
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
_NO_ACCESS: Final = "Must have exactly one of create/read/write/append mode and at most one plus"


def _check_mode(mode: str) -> None:
    """Raise ``ValueError`` as ``io.FileIO`` does, at the first letter that is wrong."""
    seen = ""
    for letter in mode:
        if letter not in _FLAGS and letter not in "b+":
            raise ValueError(f"invalid mode: {mode}")
        if (letter in _FLAGS and any(each in _FLAGS for each in seen)) or (
            letter == "+" and "+" in seen
        ):
            raise ValueError(_NO_ACCESS)
        seen += letter
    if not any(each in _FLAGS for each in seen):
        raise ValueError(_NO_ACCESS)


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
    def fstat(self, fd: int) -> os.stat_result: ...


class RawFile(io.RawIOBase):
    """One file object and its descriptor.

    ``mode`` is one of ``r``, ``w``, ``x`` and ``a``, with ``+`` or without. ``name`` is the path
    or the descriptor that it was opened with. A buffer above a raw file keeps it open.
    """

    name: FileDescriptorOrPath

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
        self._collected = False
        self._owns_descriptor = False
        _check_mode(mode)
        self._updates = "+" in mode
        self._access = next(letter for letter in mode if letter in _FLAGS)
        self.name = file
        self._descriptor = self._opened(file, closefd=closefd, opener=opener)
        self._check()
        self._owns_descriptor = closefd

    def _opened(self, file: Any, *, closefd: bool, opener: Opener | None) -> int:
        """Return the descriptor to use, in the order of checks of ``io.FileIO``."""
        if hasattr(type(file), "__index__"):
            descriptor = int(index(file))
            if abs(descriptor) > INT_MAX:
                kind = type(file).__name__
                raise TypeError(f"expected str, bytes or os.PathLike object, not {kind}")
            if descriptor < 0:
                raise ValueError("negative file descriptor")
            return descriptor
        if b"\0" in os.fsencode(file):
            raise ValueError("embedded null byte")
        if not closefd:
            raise ValueError("Cannot use closefd=False with file name")
        access = os.O_RDWR if self._updates else os.O_WRONLY if self.writable() else os.O_RDONLY
        flags = access | _FLAGS[self._access] | os.O_CLOEXEC
        if opener is None:
            return self._process.open(file, flags, _PERMISSIONS)
        opened: object = opener(file, flags)
        if not isinstance(opened, int):
            raise TypeError("expected integer from opener")
        if opened < 0:
            raise ValueError(f"opener returned {opened}")
        return opened

    def _check(self) -> None:
        """Refuse a directory, and move to the end of a file that is appended to."""
        process, descriptor = self._process, self._descriptor
        if stat.S_ISDIR(process.fstat(descriptor).st_mode):
            if not isinstance(self.name, int):
                process.close(descriptor)
            raise os_error(errno.EISDIR, self.name)
        if self._access == "a":
            process.lseek(descriptor, 0, os.SEEK_END)

    def __repr__(self) -> str:
        if self.closed:
            return "<_io.FileIO [closed]>"
        shown = f"name={self.name!r}" if hasattr(self, "name") else f"fd={self._descriptor}"
        return f"<_io.FileIO {shown} mode={self.mode!r} closefd={self.closefd}>"

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("cannot pickle 'RawFile' object")

    # -- properties ------------------------------------------------------------------------

    @property
    def mode(self) -> str:
        """The mode as ``io.FileIO`` shows it."""
        if not self._updates:
            return f"{self._access}b"
        return "rb+" if self._access == "w" else f"{self._access}b+"

    @property
    def closefd(self) -> bool:
        """Whether closing this object closes the descriptor."""
        return self._owns_descriptor

    @property
    def _blksize(self) -> int:
        """The size of the buffer that ``open`` puts above this file, in bytes."""
        return BLOCK_BYTES

    def readable(self) -> bool:
        self._must_be_open()
        return self._updates or self._access == "r"

    def writable(self) -> bool:
        self._must_be_open()
        return self._updates or self._access != "r"

    def seekable(self) -> bool:
        self._must_be_open()
        return True

    def fileno(self) -> int:
        self._must_be_open()
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
        data = super().read(size)
        assert data is not None
        return data

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read into ``buffer``; return the number of bytes."""
        if not self.readable():
            raise io.UnsupportedOperation("File not open for reading")
        try:
            view = writable_view(buffer)
        except (TypeError, BufferError):
            kind = type(buffer).__name__
            message = f"readinto() argument must be read-write bytes-like object, not {kind}"
            raise TypeError(message) from None
        data = self._process.read(self._descriptor, view.nbytes)
        view[: len(data)] = data
        return len(data)

    def write(self, data: ReadableBuffer, /) -> int:
        """Write ``data``; return the number of bytes that were written."""
        if not self.writable():
            raise io.UnsupportedOperation("File not open for writing")
        if self._is_discarded():
            return memoryview(data).nbytes
        return self._process.write(self._descriptor, data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._must_be_open()
        if self._is_discarded():
            return 0
        return self._process.lseek(self._descriptor, offset, whence)

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
        if getattr(self, "_finalizing", False):
            self._dealloc_warn(self, stacklevel=3)
        super().close()
        if self._owns_descriptor and not self._is_discarded():
            self._process.close(self._descriptor)

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
        return self._collected or bool(getattr(self, "_finalizing", False))

    def _must_be_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")
