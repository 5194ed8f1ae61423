"""The parts of long executions that are not kept in memory.

A spool is a file without a name, so a crash leaves nothing of it: everything in it is in the
write-ahead log as well. It has no barrier.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from posixpath import join
from typing import Final, NamedTuple
from zlib import crc32

from system.ports import File, FileSystem, Ids, OpenMode
from system.storage.transfer import write_all

PIECE_BYTES: Final = 1 << 18

_NAME: Final = "spool.tmp.{}"


class Extent(NamedTuple):
    """``size_bytes`` bytes of a spool from ``offset``; ``crc`` is their CRC-32."""

    offset: int
    size_bytes: int
    crc: int


class Spool:
    """Bytes that are written once, and read in pieces.

    The file is created in ``directory``, which must exist; raises ``OSError``. One thread may
    read bytes while another writes further ones.
    """

    def __init__(self, files: FileSystem, ids: Ids, directory: str) -> None:
        # If a kill comes between the two calls, the next boot removes it as a temporary file.
        path = join(directory, _NAME.format(ids.random_hex(8)))
        self._file: File = files.open(path, OpenMode.CREATE)
        self._end = 0
        self._readers = set[object]()
        self._is_closed = False
        with suppress(OSError):
            files.unlink(path)

    def write(self, pieces: Iterable[bytes]) -> Extent:
        """Write pieces one after the other; raises ``OSError``, and the errors of ``pieces``."""
        start = offset = self._end
        crc = 0
        for chunk in chunks(pieces):
            write_all(self._file, chunk, offset)
            offset += len(chunk)
            crc = crc32(chunk, crc)
        self._end = offset
        return Extent(start, offset - start, crc)

    def read(self, extent: Extent) -> Iterator[bytes]:
        """Yield the bytes of an extent in pieces; raises ``OSError`` if they have changed."""
        offset, crc = extent.offset, 0
        end = offset + extent.size_bytes
        while offset < end:
            piece = self._file.pread(min(PIECE_BYTES, end - offset), offset)
            if not piece:
                break
            offset += len(piece)
            crc = crc32(piece, crc)
            yield piece
        if offset < end or crc != extent.crc:
            raise OSError(errno.EIO, f"bytes of a long execution are gone, at offset {offset}")

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Keep the bytes while the context lasts, also if ``close`` is called meanwhile."""
        reader = object()
        self._readers.add(reader)
        try:
            yield
        finally:
            self._readers.discard(reader)
            if self._is_closed:
                self.close()

    def close(self) -> None:
        """Close the file, and so delete its content, as soon as it is not read any more."""
        self._is_closed = True
        if not self._readers:
            with suppress(OSError):
                self._file.close()


def chunks(pieces: Iterable[bytes], size_bytes: int = PIECE_BYTES) -> Iterator[bytes]:
    """Yield the same bytes in chunks of ``size_bytes``, the last one shorter."""
    waiting = bytearray()
    for piece in pieces:
        for start in range(0, len(piece), size_bytes):
            waiting += piece[start : start + size_bytes]
            if len(waiting) >= size_bytes:
                yield bytes(waiting[:size_bytes])
                del waiting[:size_bytes]
    if waiting:
        yield bytes(waiting)
