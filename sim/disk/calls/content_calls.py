"""The calls on the content of an open file: reading, writing, seeking, and its size.

Reads keep no time of access: the disk behaves as one mounted ``noatime``.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from sim.disk.cache.inode import BLOCK_BYTES, Inode
from sim.disk.cache.refusal import FILE_MAX_BYTES
from sim.disk.calls.arguments import LONG_MAX, c_int, off_t, readable_buffer, ssize_t
from sim.disk.calls.descriptor import OpenFile
from sim.disk.calls.interpreter import NO_DESCRIPTOR
from sim.disk.calls.path_name import FileDescriptorOrPath, path_or_descriptor
from sim.disk.calls.permissions import WRITE
from sim.disk.calls.sync_calls import SyncCalls
from sim.disk.os_error import os_error
from sim.errors import UnsupportedOperation

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_SYNC_FLAGS: Final = os.RWF_DSYNC | os.RWF_SYNC


class ContentCalls(SyncCalls):
    """Calls on bytes: offsets and lengths count them."""

    __slots__ = ()

    # -- reading and writing ---------------------------------------------------------------

    def read(self, fd: int, length: int, /) -> bytes:
        """Read up to ``length`` bytes from the offset on."""
        fd, length = c_int(fd), ssize_t(length)
        if length < 0:
            raise self._invalid()
        file = self._file(fd)
        data = self._get(file, length, file.offset)
        file.offset += len(data)
        return data

    def pread(self, fd: int, length: int, offset: int, /) -> bytes:
        """Read up to ``length`` bytes from ``offset`` on; the descriptor's own offset stays."""
        fd, length, offset = c_int(fd), ssize_t(length), off_t(offset)
        if length < 0 or offset < 0:
            raise self._invalid()
        file = self._file(fd)
        if offset + length > LONG_MAX and file.flags.readable:
            raise os_error(errno.EINVAL)
        return self._get(file, length, offset)

    def write(self, fd: int, data: ReadableBuffer, /) -> int:
        """Write at the offset, or at the end with ``O_APPEND``; return the bytes written."""
        fd, content = c_int(fd), readable_buffer(data)
        file = self._file(fd)
        inode = self._writable(file)
        if not content:
            return 0
        offset = inode.size if file.flags.append else file.offset
        count = self._put(file, inode, content, offset)
        file.offset = offset + count
        return count

    def pwrite(self, fd: int, data: ReadableBuffer, offset: int, /) -> int:
        """Write at ``offset``; with ``O_APPEND`` Linux writes at the end all the same."""
        fd, content, offset = c_int(fd), readable_buffer(data), off_t(offset)
        if offset < 0:
            raise self._invalid()
        file = self._file(fd)
        inode = self._writable(file)
        if not content:
            return 0
        if offset + len(content) > LONG_MAX:
            raise os_error(errno.EINVAL)
        return self._put(file, inode, content, inode.size if file.flags.append else offset)

    def lseek(self, fd: int, position: int, whence: int, /) -> int:
        """Move the offset, and return it; ``whence`` may be ``SEEK_DATA`` or ``SEEK_HOLE``."""
        fd, position, whence = c_int(fd), off_t(position), c_int(whence)
        file = self._file(fd)
        if file.is_directory:
            if (position, whence) != (0, os.SEEK_SET):
                raise UnsupportedOperation("lseek: a directory can only be rewound")
            return 0
        inode = self._cache[file.number]
        match whence:
            case os.SEEK_SET:
                offset = position
            case os.SEEK_CUR:
                offset = file.offset + position
            case os.SEEK_END:
                offset = inode.size + position
            case os.SEEK_DATA | os.SEEK_HOLE:
                offset = _data_or_hole(inode, position, whence)
            case _:
                offset = -1
        if not 0 <= offset <= FILE_MAX_BYTES:
            raise os_error(errno.EINVAL)
        file.offset = offset
        return offset

    def posix_fadvise(self, fd: int, offset: int, length: int, advice: int, /) -> None:
        """Drop whole pages for ``POSIX_FADV_DONTNEED``; other advice has no effect.

        The page that the file ends in is whole if the bytes end with it or with the file, or if
        ``length`` is 0. An ``offset`` before the file means all of it, more than a page before it
        nothing (mm/fadvise.c of Linux).
        """
        fd, offset, length, advice = c_int(fd), off_t(offset), off_t(length), c_int(advice)
        file = self._file(fd)
        if length < 0 or not os.POSIX_FADV_NORMAL <= advice <= os.POSIX_FADV_NOREUSE:
            raise os_error(errno.EINVAL)
        if advice == os.POSIX_FADV_DONTNEED and offset > -BLOCK_BYTES:
            start, end = -(-offset // BLOCK_BYTES) * BLOCK_BYTES, offset + length
            if not length or offset < 0 or end == self.disk.inode(file.number).size:
                self.disk.drop_pages(file.number, file.path, start, 0)
            elif start < (end := end // BLOCK_BYTES * BLOCK_BYTES):
                self.disk.drop_pages(file.number, file.path, start, end)

    # -- size ------------------------------------------------------------------------------

    def truncate(self, path: FileDescriptorOrPath, length: int) -> None:
        """Cut a file to ``length`` bytes, or extend it to them with zeros."""
        where, length = path_or_descriptor(path, "truncate"), off_t(length)
        if isinstance(where, int) and where != NO_DESCRIPTOR:
            self.ftruncate(where, length)
            return
        if length < 0:
            raise self._invalid(path)
        inode = self._find(where, None, path)
        if inode.is_directory:
            raise os_error(errno.EISDIR, path)
        if not self._identity.may(inode, WRITE):
            raise os_error(errno.EACCES, path)
        text = self._text(where)
        self.disk.resize(self._changeable(inode.number, length, text, path), length, text)

    def ftruncate(self, fd: int, length: int, /) -> None:
        """Cut an open file to ``length`` bytes, or extend it to them with zeros."""
        fd, length = c_int(fd), off_t(length)
        if length < 0:
            raise self._invalid()
        file = self._file(fd)
        if not file.flags.writable:
            raise os_error(errno.EINVAL)
        inode = self._changeable(file.number, length, file.path)
        self.disk.resize(inode, length, file.path)

    def posix_fallocate(self, fd: int, offset: int, length: int, /) -> None:
        """Extend the file to ``offset + length`` bytes; it never shrinks.

        No blocks are reserved: a simulated disk is full only when a fault makes it so.
        """
        fd, offset, length = c_int(fd), off_t(offset), off_t(length)
        file = self._file(fd)
        if offset < 0 or length <= 0:
            raise os_error(errno.EINVAL)
        if not file.flags.writable:
            raise os_error(errno.EBADF)
        inode = self._changeable(file.number, offset + length, file.path)
        self.disk.allocate(inode, offset + length, file.path)

    # -- shared ----------------------------------------------------------------------------

    def _invalid(self, path: object = None) -> OSError:
        """Return the error of a negative number; a dead process raises ``PowerOff`` instead."""
        self._must_live()
        return os_error(errno.EINVAL, path)

    def _get(self, file: OpenFile, length: int, offset: int) -> bytes:
        """Read from an open file, through the interposer of the disk."""
        if not file.flags.readable:
            raise os_error(errno.EBADF)
        if file.is_directory:
            raise os_error(errno.EISDIR)
        data = self._cache[file.number].read(offset, length)
        interposer = self.disk.interposer
        if interposer is None:
            return data
        return interposer.reading(file.path, file.number, offset, data)

    def _writable(self, file: OpenFile) -> Inode:
        """Return the inode of a file that is open for writing; EBADF if it is not."""
        if not file.flags.writable:
            raise os_error(errno.EBADF)
        return self._cache[file.number]

    def _put(self, file: OpenFile, inode: Inode, data: bytes, offset: int, flags: int = 0) -> int:
        """Write some bytes, and sync them if the file was opened so; return their number.

        ``RWF_DSYNC`` and ``RWF_SYNC`` in ``flags`` sync them too.
        """
        assert data
        if offset + len(data) > FILE_MAX_BYTES:
            data = data[: max(FILE_MAX_BYTES - offset, 0)]
            if not data:
                raise os_error(errno.EFBIG)
        if not self._trusted:
            self._drop_privileges(inode, file.path)
        count = self.disk.write(inode, offset, data, file.path)
        if file.flags.sync or flags & _SYNC_FLAGS:
            data_only = file.flags.sync_data_only and not flags & os.RWF_SYNC
            self._sync(file, data_only=data_only, start=offset, end=offset + count)
        return count

    def _changeable(self, number: int, size: int, text: str, path: object = None) -> Inode:
        """Return the inode of a file that is to have ``size`` bytes; EFBIG above the limit."""
        if size > FILE_MAX_BYTES:
            raise os_error(errno.EFBIG, path)
        inode = self._cache[number]
        self._drop_privileges(inode, text)
        return inode


def _data_or_hole(inode: Inode, position: int, whence: int) -> int:
    """Return the first offset from ``position`` on that holds data, or that holds none.

    Data are blocks that were written. The end of the file counts as a hole. ENXIO if there is
    no such offset.
    """
    if not 0 <= position < inode.size:
        raise os_error(errno.ENXIO)
    index = position // BLOCK_BYTES
    if whence == os.SEEK_HOLE:
        while index in inode.blocks:
            index += 1
        return min(max(position, index * BLOCK_BYTES), inode.size)
    if index in inode.blocks:
        return position
    later = min((block for block in inode.blocks if block > index), default=None)
    if later is None:
        raise os_error(errno.ENXIO)
    return later * BLOCK_BYTES
