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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Self

from powercut.interpose.lifetime import Lifetime
from powercut.interpose.router import ROUTER
from powercut.interpose.wrapper import is_of_disk
from sim.disk.cache.inode import BLOCK_BYTES, NO_BLOCKS, Blocks, Inode
from sim.disk.calls.descriptor import OpenFile
from sim.disk.calls.process import Process
from sim.disk.os_error import os_error

RealMmap = real_mmap.mmap
_MS_SYNC: Final = 4


def routed_mappings() -> Iterator[tuple[object, object]]:
    """Yield ``mmap.mmap`` with its replacement."""
    yield RealMmap, mmap


class FileMapping:
    """The memory of one file, in the anonymous file ``memory``, which is as sparse as the file.

    All ``users``, the mappings of the file in one lifetime, have this memory. It is written back
    if ``is_written``: one of them is shared and writable.
    """

    def __init__(self, lifetime: Lifetime, fd: int, number: int) -> None:
        process = lifetime.process
        self.number = number
        self.users = 0
        self.is_written = False
        self._disk = process.disk
        self._path = process.path_of(fd)
        self._shown: Blocks = NO_BLOCKS
        self._size = 0
        self.memory = os.memfd_create("powercut")
        self.after_call()

    @property
    def is_used(self) -> bool:
        return self.users > 0

    def drop(self) -> None:
        """Count one mapping less."""
        self.users -= 1

    @property
    def size(self) -> int:
        """The size of the file in bytes; the memory is not shorter."""
        return self._inode.size

    @property
    def _inode(self) -> Inode:
        return self._disk.inode(self.number)

    def before_call(self) -> None:
        """Write the pages that the program changed to the disk, the last one first.

        The order of its stores is not known. A program that is right stores to the page that
        refers to others after them, and that is most often a header.
        """
        if not self.is_written:
            return
        shown = self._shown
        for start, end in reversed([*_data(self.memory)]):
            content = os.pread(self.memory, end - start, start)
            for offset in reversed(range(start, end, BLOCK_BYTES)):
                page = content[offset - start : offset - start + BLOCK_BYTES]
                before = shown.get(offset // BLOCK_BYTES, b"")
                if page.rstrip(b"\0") != before.rstrip(b"\0"):
                    page = page[: max(self._inode.size - offset, 0)]
                    if page:
                        self._disk.write(self._inode, offset, page, self._path)
        self._shown = self._inode.blocks

    def after_call(self) -> None:
        """Show the program the bytes that a call wrote to the file."""
        inode, shown = self._inode, self._shown
        if inode.size < self._size:
            with self.cut_to_size():
                pass
        elif inode.size > os.fstat(self.memory).st_size:
            os.ftruncate(self.memory, inode.size)
        self._size = inode.size
        if inode.blocks is shown:
            return
        for index in sorted({*inode.blocks, *shown}):
            block = inode.blocks.get(index, b"")
            if block is not shown.get(index):
                page = block.ljust(BLOCK_BYTES, b"\0")
                size = os.fstat(self.memory).st_size
                os.pwrite(self.memory, page[: size - index * BLOCK_BYTES], index * BLOCK_BYTES)
        self._shown = inode.blocks

    @contextmanager
    def cut_to_size(self) -> Iterator[None]:
        """Give the memory the size of the file for a moment.

        That drops the pages behind the end, also those that a private mapping has changed. Then
        the memory is as long as before: a program that reads there gets zeros.
        """
        size = os.fstat(self.memory).st_size
        os.ftruncate(self.memory, self.size)
        try:
            yield
        finally:
            os.ftruncate(self.memory, size)

    @contextmanager
    def opened(self, way: int) -> Iterator[int]:
        """Lend a descriptor of the memory, which cannot be written if ``way`` is ``O_RDONLY``.

        So the kernel refuses the mappings of a file that is open for reading, and their resizing.
        """
        if way != os.O_RDONLY:
            yield self.memory
            return
        descriptor = os.open(f"/proc/self/fd/{self.memory}", os.O_RDONLY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def resize(self, _process: Process, size: int) -> None:
        """Set the size of the file in bytes, as that of the memory was set."""
        self._disk.resize(self._inode, size, self._path)
        self._shown = self._inode.blocks

    def release(self) -> None:
        """Close the memory; the lifetime has dropped it."""
        os.close(self.memory)


def _data(descriptor: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each range of a sparse file that holds data."""
    end = 0
    while True:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end


class MappingType(type):
    """The metaclass of the routed ``mmap``, of which real mappings are instances."""

    def __instancecheck__(cls, instance: object) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return cls in subclass.__mro__ or (cls is mmap and RealMmap in subclass.__mro__)


class mmap(RealMmap, metaclass=MappingType):  # noqa: N801 - the name of the class it replaces
    """A mapping of a file of the disk, or of the real machine, with which ``_file`` is None."""

    _file: FileMapping | None = None
    _lifetime: Lifetime | None = None
    _description: OpenFile
    _offset = 0
    _drop: Callable[[], object]
    _writes = False

    def __new__(cls, fileno: int, length: int, *arguments: Any, **options: Any) -> Self:
        lifetime = ROUTER.lifetime
        if lifetime is None or not is_of_disk(fileno):
            return super().__new__(cls, fileno, length, *arguments, **options)
        is_shared, writes = _protection(*arguments, **options)
        file = _file_mapping(lifetime, fileno)
        try:
            way = lifetime.call(Process.status_flags, fileno) & os.O_ACCMODE
            with lifetime.lock, file.cut_to_size(), file.opened(way) as memory:
                made = super().__new__(cls, memory, length, *arguments, **options)
            if way == os.O_WRONLY:
                raise os_error(errno.EACCES)
        except BaseException:
            file.drop()
            raise
        made._file, made._lifetime = file, lifetime
        made._description = lifetime.call(Process.description_of, fileno)
        made._offset = options.get("offset", arguments[3] if len(arguments) > 3 else 0)
        made._writes = is_shared and writes
        file.is_written = file.is_written or made._writes
        made._drop = finalizer = weakref.finalize(made, file.drop)
        finalizer.atexit = False
        return made

    def __repr__(self) -> str:
        shown = super().__repr__()
        return shown.replace("<mmap ", "<mmap.mmap ") if type(self) is mmap else shown

    def flush(self, *arguments: int, **options: int) -> None:
        """Write changed pages to the file, and make the data in these pages durable.

        ``flags``, from CPython 3.15 on, are those of ``msync(2)``: without ``MS_SYNC`` it starts
        no write.
        """
        super().flush(*arguments, **options)
        is_sync = (options.get("flags") or _MS_SYNC) & _MS_SYNC
        if is_sync and self._file is not None and self._lifetime is not None:
            start = self._offset + (arguments[0] if arguments else 0)
            end = start + arguments[1] if len(arguments) > 1 else self._offset + len(self)
            # Only a shared mapping that can be written has something to sync.
            if end > start and self._writes:
                self._lifetime.call(Process.msync, self._description, start, end)

    def size(self) -> int:
        """Return the size of the file in bytes, which may differ from that of the mapping."""
        size = super().size()
        return size if self._file is None else self._file.size

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
            self._drop()
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


def _file_mapping(lifetime: Lifetime, fd: int) -> FileMapping:
    """Return the memory of a file for one more mapping, which drops it."""
    with lifetime.lock:
        number = lifetime.fstat(fd).st_ino
        for file in lifetime.mappings:
            if isinstance(file, FileMapping) and file.number == number:
                break
        else:
            file = FileMapping(lifetime, fd, number)
            lifetime.map(file)
        file.users += 1
    return file
