"""Calls that move bytes in other ways than ``read`` and ``write``: vectors, and file to file.

Each that writes is one write to the disk, and so one crash point.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sim.disk.calls.descriptor import OpenFile
from sim.disk.calls.descriptor_calls import DescriptorCalls
from sim.disk.os_error import os_error
from sim.errors import UnsupportedOperation

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

IOV_MAX: Final = 1024


class TransferCalls(DescriptorCalls):
    """Vectored calls, ``sendfile`` and ``copy_file_range``."""

    __slots__ = ()

    def readv(self, fd: int, buffers: Sequence[WriteableBuffer], /) -> int:
        """Read into the buffers, one after the other; return how many bytes came."""
        views = _views(buffers)
        length = sum(view.nbytes for view in views)
        if not length and self._file(fd).flags.readable:
            return 0
        return _scatter(views, self.read(fd, length))

    def preadv(
        self, fd: int, buffers: Sequence[WriteableBuffer], offset: int, flags: int = 0, /
    ) -> int:
        """Read at ``offset`` into the buffers; return how many bytes came."""
        _refuse_flags("preadv", flags)
        views = _views(buffers)
        return _scatter(views, self.pread(fd, sum(view.nbytes for view in views), offset))

    def writev(self, fd: int, buffers: Sequence[ReadableBuffer], /) -> int:
        """Write the buffers as one."""
        return self.write(fd, b"".join(_views(buffers)))

    def pwritev(
        self, fd: int, buffers: Sequence[ReadableBuffer], offset: int, flags: int = 0, /
    ) -> int:
        """Write the buffers as one at ``offset``."""
        _refuse_flags("pwritev", flags)
        return self.pwrite(fd, b"".join(_views(buffers)), offset)

    def copy_file_range(
        self,
        src: int,
        dst: int,
        count: int,
        offset_src: int | None = None,
        offset_dst: int | None = None,
    ) -> int:
        """Copy up to ``count`` bytes; an offset that is None is the descriptor's, and moves."""
        if count < 0:
            raise ValueError("negative value for 'count' not allowed")
        source, target = self._file(src), self._file(dst)
        if source.is_directory or target.is_directory:
            raise os_error(errno.EISDIR)
        if not source.flags.readable or not target.flags.writable or target.flags.append:
            raise os_error(errno.EBADF)
        start = source.offset if offset_src is None else offset_src
        to_start = target.offset if offset_dst is None else offset_dst
        if start < 0 or to_start < 0:
            # Linux adds without a sign, and meets the overflow first.
            overflows = start < 0 <= start + count or to_start < 0 <= to_start + count
            raise os_error(errno.EOVERFLOW if overflows else errno.EINVAL)
        count = min(count, max(self._inode(source.number).size - start, 0))
        if source.number == target.number and abs(start - to_start) < count:
            raise os_error(errno.EINVAL)
        copied = self._copy(source, start, target, to_start, count)
        if offset_src is None:
            source.offset = start + copied
        if offset_dst is None:
            target.offset = to_start + copied
        return copied

    def sendfile(self, out_fd: int, in_fd: int, offset: int | None, count: int) -> int:
        """Write ``count`` bytes of one file to the offset of another."""
        source = self._file(in_fd)
        if not source.flags.readable:
            raise os_error(errno.EBADF)
        start = source.offset if offset is None else offset
        if start < 0:
            raise os_error(errno.EINVAL)
        target = self._file(out_fd)
        if not target.flags.writable:
            raise os_error(errno.EBADF)
        if target.flags.append or (source.is_directory and count):
            raise os_error(errno.EINVAL)
        if not count:
            return 0
        copied = self._copy(source, start, target, target.offset, count)
        target.offset += copied
        if offset is None:
            source.offset = start + copied
        return copied

    def _copy(
        self, source: OpenFile, start: int, target: OpenFile, to_start: int, count: int
    ) -> int:
        data = self._get(source, count, start)
        return self._put(target, self._written(target), data, to_start) if data else 0


def _views(buffers: Sequence[ReadableBuffer]) -> list[memoryview]:
    if len(buffers) > IOV_MAX:
        raise os_error(errno.EINVAL)
    return [memoryview(buffer).cast("B") for buffer in buffers]


def _scatter(views: list[memoryview], data: bytes) -> int:
    position = 0
    for view in views:
        piece = data[position : position + view.nbytes]
        view[: len(piece)] = piece
        position += len(piece)
    return len(data)


def _refuse_flags(call: str, flags: int) -> None:
    if flags:
        raise UnsupportedOperation(f"{call}: flags={flags:#x} is not modelled; open with O_SYNC")
