"""``mmap`` of a file of the disk: real memory beside a shadow of the file.

The memory is that of an anonymous file, so every access of the program is a real one. Before
each call on the disk, pages that differ from the shadow become writes of the disk; after a call
that changed the file, its new bytes are put into the memory. ``flush`` writes the pages back and
syncs the data of the file.

Left out: the order of stores between two calls, pages that the kernel writes back on its own
before the process makes its next call, and the signal for memory behind the end of the file.
"""

from __future__ import annotations

import errno
import mmap as real_mmap
import os
import weakref
from collections.abc import Iterator
from typing import Any, Final, Self

from powercut.interpose.lifetime import Lifetime
from powercut.interpose.router import ROUTER
from powercut.interpose.wrapper import is_of_disk
from sim.disk.calls.process import Process
from sim.disk.os_error import os_error

RealMmap = real_mmap.mmap
_PAGE: Final = 4096


def routed_mappings() -> Iterator[tuple[object, object]]:
    """Yield ``mmap.mmap`` with its replacement."""
    yield RealMmap, mmap


class FileMapping:
    """The memory of one file, in the anonymous file ``memory``.

    ``is_shared`` is False for a private mapping, which is never written back.
    """

    def __init__(self, lifetime: Lifetime, fd: int, *, is_shared: bool) -> None:
        process = lifetime.process
        self._disk = process.disk
        self._number = lifetime.fstat(fd).st_ino
        self._path = process.path_of(fd)
        self._is_shared = is_shared
        self._shadow = self._content()
        self._blocks = self._disk.inode(self._number).blocks
        self.memory = os.memfd_create("powercut")
        self.is_used = True
        os.pwrite(self.memory, self._shadow, 0)

    def _content(self) -> bytes:
        inode = self._disk.inode(self._number)
        return inode.read(0, inode.size)

    def before_call(self) -> None:
        """Write the pages that the program changed to the disk."""
        if not self._is_shared:
            return
        now = os.pread(self.memory, len(self._shadow), 0)
        if now == self._shadow:
            return
        before, self._shadow = self._shadow, now
        for start in range(0, len(now), _PAGE):
            page = now[start : start + _PAGE]
            if page != before[start : start + _PAGE]:
                inode = self._disk.inode(self._number)
                page = page[: max(inode.size - start, 0)]
                if page:
                    self._disk.write(inode, start, page, self._path)
        self._blocks = self._disk.inode(self._number).blocks

    def after_call(self) -> None:
        """Show the program the bytes that a call wrote to the file."""
        inode = self._disk.inode(self._number)
        if inode.blocks is self._blocks and inode.size <= len(self._shadow):
            return
        content = self._content()
        self._blocks = inode.blocks
        # The memory keeps its length: a program that reads behind the end of its file gets zeros.
        self._shadow = content.ljust(len(self._shadow), b"\0")
        os.pwrite(self.memory, self._shadow, 0)

    def sync(self, _process: Process) -> None:
        """Make the data of the file durable; the caller has written it back."""
        self._disk.sync(self._number, self._path, data_only=True)

    def resize(self, _process: Process, size: int) -> None:
        """Set the size of the file in bytes."""
        self._disk.resize(self._disk.inode(self._number), size, self._path)
        self._shadow = self._content()
        self._blocks = self._disk.inode(self._number).blocks

    def release(self) -> None:
        """Close the memory; the lifetime has dropped it."""
        os.close(self.memory)


class MappingType(type):
    """The metaclass of the routed ``mmap``, of which real mappings are instances."""

    def __instancecheck__(cls, instance: object) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return cls in subclass.__mro__ or (cls is mmap and RealMmap in subclass.__mro__)


class mmap(RealMmap, metaclass=MappingType):  # noqa: N801 - the name of the class it replaces
    """A mapping of either world; ``_file`` is None for one of the real machine."""

    _file: FileMapping | None = None
    _lifetime: Lifetime | None = None
    _offset = 0

    def __new__(cls, fileno: int, length: int, *arguments: Any, **options: Any) -> Self:
        lifetime = ROUTER.lifetime
        if lifetime is None or not is_of_disk(fileno):
            return super().__new__(cls, fileno, length, *arguments, **options)
        is_shared, writes = _protection(*arguments, **options)
        _check_access(lifetime, fileno, writes=is_shared and writes)
        file = FileMapping(lifetime, fileno, is_shared=is_shared and writes)
        try:
            made = super().__new__(cls, file.memory, length, *arguments, **options)
        except BaseException:
            file.release()
            raise
        made._file, made._lifetime = file, lifetime
        made._offset = options.get("offset", arguments[3] if len(arguments) > 3 else 0)
        lifetime.mappings.append(file)
        weakref.finalize(made, setattr, file, "is_used", False).atexit = False
        return made

    def flush(self, *arguments: int) -> None:
        """Write changed pages to the file, and make its data durable."""
        super().flush(*arguments)
        if self._file is not None and self._lifetime is not None:
            self._lifetime.call(self._file.sync)

    def resize(self, newsize: int, /) -> None:
        """Resize the mapping and the file."""
        if self._file is not None and self._lifetime is not None:
            self._lifetime.settle()
        super().resize(newsize)
        if self._file is not None and self._lifetime is not None:
            self._lifetime.call(self._file.resize, self._offset + newsize)

    def close(self) -> None:
        """Write changed pages to the file, and end the mapping."""
        super().close()
        if self._file is not None and self._lifetime is not None:
            self._file.is_used = False
            if not self._lifetime.poisoned:
                self._lifetime.settle()

    def __exit__(self, *_failure: object) -> None:
        self.close()


mmap.__module__ = "mmap"
mmap.__doc__ = RealMmap.__doc__


def _protection(
    flags: int = real_mmap.MAP_SHARED,
    prot: int = real_mmap.PROT_READ | real_mmap.PROT_WRITE,
    access: int = real_mmap.ACCESS_DEFAULT,
    *_offset: int,
    **_options: Any,
) -> tuple[bool, bool]:
    """Return whether a mapping is shared, and whether it can be written."""
    if access == real_mmap.ACCESS_DEFAULT:
        return bool(flags & real_mmap.MAP_SHARED), bool(prot & real_mmap.PROT_WRITE)
    is_private = access == real_mmap.ACCESS_COPY
    return not is_private, access != real_mmap.ACCESS_READ


def _check_access(lifetime: Lifetime, fd: int, *, writes: bool) -> None:
    way = lifetime.call(Process.status_flags, fd) & os.O_ACCMODE
    if way == os.O_WRONLY or (writes and way != os.O_RDWR):
        raise os_error(errno.EACCES)
