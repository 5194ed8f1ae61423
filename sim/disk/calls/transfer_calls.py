"""The calls that move bytes in other ways: from and to several buffers, and between files.

Each call that writes makes one write to the disk, and so is one crash point.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sim.disk.cache.refusal import FILE_MAX_BYTES
from sim.disk.calls.arguments import (
    LONG_MAX,
    c_int,
    off_t,
    optional_offset,
    read_write_buffer,
    ssize_t,
    vector,
)
from sim.disk.calls.content_calls import ContentCalls
from sim.disk.calls.descriptor import OpenFile
from sim.disk.calls.interpreter import SENDFILE_CHECKS_COUNT
from sim.disk.os_error import os_error
from sim.errors import UnsupportedOperation

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

# Linux ignores ``RWF_HIPRI`` unless a file is open with ``O_DIRECT``, and the flags of writes in a
# read. All content is in the page cache, so no read waits.
_WRITE_FLAGS: Final = os.RWF_HIPRI | os.RWF_DSYNC | os.RWF_SYNC | os.RWF_APPEND
_READ_FLAGS: Final = _WRITE_FLAGS | os.RWF_NOWAIT


class TransferCalls(ContentCalls):
    """Vectored calls, ``sendfile`` and ``copy_file_range``."""

    __slots__ = ()

    def readinto(self, fd: int, buffer: WriteableBuffer, /) -> int:
        """Read into ``buffer``; return the bytes read. ``os`` has it since CPython 3.14."""
        fd, view = c_int(fd), read_write_buffer(buffer, "readinto", " 2")
        return _scatter([view], self.read(fd, view.nbytes))

    def readv(self, fd: int, buffers: Sequence[WriteableBuffer], /) -> int:
        """Read into the buffers, one after the other; return the bytes read."""
        fd, views = c_int(fd), vector(buffers, "readv", writable=True)
        length = sum(view.nbytes for view in views)
        if not length and self._file(fd).flags.readable:
            return 0
        return _scatter(views, self.read(fd, length))

    def preadv(
        self, fd: int, buffers: Sequence[WriteableBuffer], offset: int, flags: int = 0, /
    ) -> int:
        """Read at ``offset``, or like ``readv`` if that is -1; return the bytes read."""
        fd, offset, flags = c_int(fd), off_t(offset), c_int(flags)
        views = vector(buffers, "preadv2", writable=True)
        _check_flags("preadv", flags, _READ_FLAGS)
        if offset == -1:
            return self.readv(fd, buffers)
        length = sum(view.nbytes for view in views)
        if not length and offset >= 0 and self._file(fd).flags.readable:
            return 0
        return _scatter(views, self.pread(fd, length, offset))

    def writev(self, fd: int, buffers: Sequence[ReadableBuffer], /) -> int:
        """Write the buffers as one; return the bytes written."""
        fd, views = c_int(fd), vector(buffers, "writev", writable=False)
        return self.write(fd, b"".join(views))

    def pwritev(
        self, fd: int, buffers: Sequence[ReadableBuffer], offset: int, flags: int = 0, /
    ) -> int:
        """Write at ``offset``, or like ``writev`` if that is -1; return the bytes written.

        Of the ``flags``, ``RWF_DSYNC`` and ``RWF_SYNC`` sync the bytes of this write, as
        ``O_DSYNC`` and ``O_SYNC`` those of each one; ``RWF_APPEND`` writes at the end.
        """
        fd, offset, flags = c_int(fd), off_t(offset), c_int(flags)
        views = vector(buffers, "pwritev", writable=False)
        _check_flags("pwritev", flags, _WRITE_FLAGS)
        content = b"".join(views)
        if flags:
            return self._write_with(fd, content, offset, flags)
        return self.write(fd, content) if offset == -1 else self.pwrite(fd, content, offset)

    def _write_with(self, fd: int, content: bytes, offset: int, flags: int) -> int:
        if offset < -1:
            raise self._invalid()
        moves = offset == -1
        file = self._file(fd)
        inode = self._writable(file)
        if not content:
            return 0
        if not moves and offset + len(content) > LONG_MAX:
            raise os_error(errno.EINVAL)
        if file.flags.append or flags & os.RWF_APPEND:
            offset = inode.size
        elif moves:
            offset = file.offset
        count = self._put(file, inode, content, offset, flags)
        if moves:
            file.offset = offset + count
        return count

    def copy_file_range(
        self,
        src: int,
        dst: int,
        count: int,
        offset_src: int | None = None,
        offset_dst: int | None = None,
    ) -> int:
        """Copy up to ``count`` bytes; an offset of None is the descriptor's, and moves."""
        src, dst, count = c_int(src), c_int(dst), ssize_t(count)
        from_offset, to_offset = optional_offset(offset_src), optional_offset(offset_dst)
        if count < 0:
            raise ValueError("negative value for 'count' not allowed")
        source, target = self._file(src), self._file(dst)
        if source.is_directory or target.is_directory:
            raise os_error(errno.EISDIR)
        if not source.flags.readable or not target.flags.writable or target.flags.append:
            raise os_error(errno.EBADF)
        start = source.offset if from_offset is None else from_offset
        to_start = target.offset if to_offset is None else to_offset
        if start < 0 or to_start < 0:
            # Linux adds unsigned numbers, and meets the overflow first.
            overflows = start < 0 <= start + count or to_start < 0 <= to_start + count
            raise os_error(errno.EOVERFLOW if overflows else errno.EINVAL)
        count = min(count, max(self._cache[source.number].size - start, 0))
        if to_start >= FILE_MAX_BYTES:
            raise os_error(errno.EFBIG)
        if source.number == target.number and abs(start - to_start) < count:
            raise os_error(errno.EINVAL)
        copied = self._copy(source, start, target, to_start, count)
        if from_offset is None:
            source.offset = start + copied
        if to_offset is None:
            target.offset = to_start + copied
        return copied

    def sendfile(self, out_fd: int, in_fd: int, offset: int | None, count: int) -> int:
        """Write ``count`` bytes of one file to the offset of another; return their number."""
        out_fd, in_fd = c_int(out_fd), c_int(in_fd)
        # CPython converts the buffers of the vectored calls and the offset of this one last.
        count, from_offset = ssize_t(count), optional_offset(offset)
        if count < 0 and SENDFILE_CHECKS_COUNT:
            raise ValueError("count cannot be negative")
        source = self._file(in_fd)
        if not source.flags.readable:
            raise os_error(errno.EBADF)
        start = source.offset if from_offset is None else from_offset
        if start < 0 or start + count > LONG_MAX:
            raise os_error(errno.EINVAL)
        target = self._file(out_fd)
        if not target.flags.writable:
            raise os_error(errno.EBADF)
        if target.flags.append or count < 0 or (source.is_directory and count):
            raise os_error(errno.EINVAL)
        if start >= FILE_MAX_BYTES and start + count > FILE_MAX_BYTES:
            raise os_error(errno.EOVERFLOW)
        if not count:
            return 0
        copied = self._copy(source, start, target, target.offset, count)
        target.offset += copied
        if from_offset is None:
            source.offset = start + copied
        return copied

    def _copy(
        self, source: OpenFile, start: int, target: OpenFile, to_start: int, count: int
    ) -> int:
        data = self._get(source, count, start)
        return self._put(target, self._writable(target), data, to_start) if data else 0


def _scatter(views: list[memoryview], data: bytes) -> int:
    position = 0
    for view in views:
        piece = data[position : position + view.nbytes]
        view[: len(piece)] = piece
        position += len(piece)
    return len(data)


def _check_flags(call: str, flags: int, modelled: int) -> None:
    if flags & ~modelled:
        raise UnsupportedOperation(
            f"{call}: flags={flags & ~modelled:#x} is not modelled; leave it out"
        )
