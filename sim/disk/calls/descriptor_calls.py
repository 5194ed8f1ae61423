"""The calls on an open descriptor: reading, writing, moving about, barriers.

Reads keep no time of access: the disk behaves as one mounted ``noatime``.
"""

from __future__ import annotations

import errno
import os
from heapq import heappush
from typing import TYPE_CHECKING, Final

from sim.disk.cache.inode import Inode
from sim.disk.calls.descriptor import OpenFile
from sim.disk.calls.process_state import ProcessState
from sim.disk.calls.seek import next_data, next_hole
from sim.disk.disk import DEAD
from sim.disk.os_error import os_error
from sim.errors import PowerOff, UnsupportedOperation

if TYPE_CHECKING:
    from _typeshed import HasFileno, ReadableBuffer

# The largest file of ext4 with blocks of 4,096 bytes.
FILE_MAX_BYTES: Final = ((1 << 32) - 1) * 4096
# Nothing that is written from here on down can reach the end of the largest file.
_PLAIN_OFFSET: Final = 1 << 29


class DescriptorCalls(ProcessState):
    """Calls that take a descriptor."""

    __slots__ = ()

    def close(self, fd: int) -> None:
        """Give a descriptor back; it is gone even when this raises."""
        if self._power.off:
            raise PowerOff(DEAD)
        file = self._files.pop(fd, None)
        if file is None:
            raise os_error(errno.EBADF)
        heappush(self._descriptors.free, fd)
        disk = self.disk
        if file.number in disk.locks.used:
            self._forget_locks(file)
        if not disk.calm and disk.descriptor_interposer is not None:
            disk.descriptor_interposer.closing(file.path, file.number)

    def dup(self, fd: int, /) -> int:
        """Return one more descriptor of the same open file description."""
        file = self._file(fd)
        if self._descriptors.is_full:
            raise os_error(errno.EMFILE)
        return self._descriptors.add_twin(file)

    # -- reading and writing -------------------------------------------------------------

    def read(self, fd: int, length: int, /) -> bytes:
        """Read up to ``length`` bytes from the offset on."""
        file = self._file(fd)
        data = self._get(file, length, file.offset)
        file.offset += len(data)
        return data

    def pread(self, fd: int, length: int, offset: int, /) -> bytes:
        """Read up to ``length`` bytes from ``offset`` on; the descriptor's own stays."""
        return self._get(self._file(fd), length, offset)

    def write(self, fd: int, data: ReadableBuffer, /) -> int:
        """Write at the offset, or at the end with ``O_APPEND``; return how much was taken."""
        disk, files = self.disk, self._files
        file = files[fd] if disk.calm and fd in files else self._file(fd)
        if type(data) is not bytes:
            data = memoryview(data).tobytes()
        flags = file.flags
        if not flags.writable:
            raise os_error(errno.EBADF)
        if not data:
            return 0
        number = file.number
        changed = disk.cache.changed
        inode = changed[number] if number in changed else disk.cache.own(number)
        offset = inode.size if flags.append else file.offset
        if flags.sync or offset > _PLAIN_OFFSET:
            count = self._put(file, inode, data, offset)
        else:
            count = disk.write(inode, offset, data, file.path)
        file.offset = offset + count
        return count

    def pwrite(self, fd: int, data: ReadableBuffer, offset: int, /) -> int:
        """Write at ``offset``; with ``O_APPEND`` Linux writes at the end all the same."""
        disk, files = self.disk, self._files
        file = files[fd] if disk.calm and fd in files else self._file(fd)
        if type(data) is not bytes:
            data = memoryview(data).tobytes()
        if offset < 0:
            raise os_error(errno.EINVAL)
        flags = file.flags
        if not flags.writable:
            raise os_error(errno.EBADF)
        if not data:
            return 0
        number = file.number
        changed = disk.cache.changed
        inode = changed[number] if number in changed else disk.cache.own(number)
        if flags.append:
            offset = inode.size
        if flags.sync or offset > _PLAIN_OFFSET:
            return self._put(file, inode, data, offset)
        return disk.write(inode, offset, data, file.path)

    def lseek(self, fd: int, position: int, how: int, /) -> int:
        """Move the offset, and return it; ``how`` may be ``SEEK_DATA`` and ``SEEK_HOLE``."""
        file = self._file(fd)
        inode = self._inode(file.number)
        if file.is_directory:
            if (position, how) != (0, os.SEEK_SET):
                raise UnsupportedOperation("lseek: a directory can only be rewound")
            return 0
        match how:
            case os.SEEK_SET:
                offset = position
            case os.SEEK_CUR:
                offset = file.offset + position
            case os.SEEK_END:
                offset = inode.size + position
            case os.SEEK_DATA | os.SEEK_HOLE:
                offset = _sought(inode, position, how)
            case _:
                offset = -1
        if not 0 <= offset <= FILE_MAX_BYTES:
            raise os_error(errno.EINVAL)
        file.offset = offset
        return offset

    # -- size ----------------------------------------------------------------------------

    def ftruncate(self, fd: int, length: int, /) -> None:
        """Cut an open file to ``length`` bytes, or let it grow to it with zeros."""
        file = self._file(fd)
        if length < 0 or not file.flags.writable:
            raise os_error(errno.EINVAL)
        if length > FILE_MAX_BYTES:
            raise os_error(errno.EFBIG)
        disk = self.disk
        disk.resize(disk.cache.own(file.number), length, file.path)

    def posix_fallocate(self, fd: int, offset: int, length: int, /) -> None:
        """Let the file reach to ``offset + length`` bytes; it never shrinks.

        Blocks are not set aside by it: a simulated disk is full only when a fault says so.
        """
        file = self._file(fd)
        if offset < 0 or length <= 0:
            raise os_error(errno.EINVAL)
        if not file.flags.writable:
            raise os_error(errno.EBADF)
        size = self._inode(file.number).size
        self._resize(file.number, max(size, offset + length), file.path)

    # -- barriers ------------------------------------------------------------------------

    def fsync(self, fd: int | HasFileno) -> None:
        """Make content and attributes of an inode durable; the model says what else."""
        disk, files = self.disk, self._files
        if disk.calm and type(fd) is int and fd in files:  # a dead process has no descriptor
            file = files[fd]
            disk.sync(file.number, file.path)
        else:
            self._sync(self._file(fd), False)

    def fdatasync(self, fd: int | HasFileno) -> None:
        """Make content of an inode durable, and of its attributes what reading it needs."""
        self._sync(self._file(fd), True)

    def sync(self) -> None:
        """Make everything durable."""
        self._must_live()
        self.disk.sync_all()

    # -- what they have in common --------------------------------------------------------

    def _get(self, file: OpenFile, length: int, offset: int) -> bytes:
        if length < 0 or offset < 0:
            raise os_error(errno.EINVAL)
        if not file.flags.readable:
            raise os_error(errno.EBADF)
        if file.is_directory:
            raise os_error(errno.EISDIR)
        disk, cache, number = self.disk, self._cache, file.number
        inode = cache.changed.get(number) or cache.base[number]
        data = inode.read(offset, length)
        if not disk.calm and disk.interposer is not None:
            data = disk.interposer.reading(file.path, number, offset, data)
        return data

    def _written(self, file: OpenFile) -> Inode:
        """Return the inode behind a descriptor that is about to be written through."""
        if not file.flags.writable:
            raise os_error(errno.EBADF)
        return self.disk.cache.own(file.number)

    def _put(self, file: OpenFile, inode: Inode, data: bytes, offset: int) -> int:
        if offset + len(data) > FILE_MAX_BYTES:
            data = data[: max(FILE_MAX_BYTES - offset, 0)]
            if not data:
                raise os_error(errno.EFBIG)
        count = self.disk.write(inode, offset, data, file.path)
        if file.flags.sync:
            self._sync(file, file.flags.sync_data_only)
        return count

    def _resize(self, number: int, length: int, text: str, path: object = None) -> None:
        if length > FILE_MAX_BYTES:
            raise os_error(errno.EFBIG, path)
        disk = self.disk
        disk.resize(disk.cache.own(number), length, text)

    def _sync(self, file: OpenFile, data_only: bool, /) -> None:
        """Sync, and report once an error that another descriptor met since the last time.

        Each open file description remembers how many it knows of: errseq_t of Linux.
        """
        disk = self.disk
        number = file.number
        try:
            disk.sync(number, file.path, data_only)
        except OSError:
            file.sync_errors = disk.sync_errors.get(number, 0)
            raise
        if disk.sync_errors:
            errors = disk.sync_errors.get(number, 0)
            if errors != file.sync_errors:
                file.sync_errors = errors
                raise os_error(errno.EIO)


def _sought(inode: Inode, position: int, how: int) -> int:
    if not 0 <= position < inode.size:
        raise os_error(errno.ENXIO)
    if how == os.SEEK_HOLE:
        return next_hole(inode, position)
    offset = next_data(inode, position)
    if offset is None:
        raise os_error(errno.ENXIO)
    return offset
