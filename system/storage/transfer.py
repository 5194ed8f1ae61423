"""Complete reads and writes: one POSIX call may transfer less than it was asked to.

A short write that is taken for a whole one leaves a torn line in a running process; a short
read that is taken for the end of a file cuts good lines off.
"""

from __future__ import annotations

import errno
from typing import Final

from system.ports import File

CHUNK_BYTES: Final = 1 << 20


def read_all(file: File, offset: int = 0, end: int | None = None) -> bytes:
    """Return the bytes from ``offset`` to ``end`` (bytes; by default the end of the file).

    Raises ``OSError``; EIO also when the file returns fewer bytes than its size.
    """
    if end is None:
        end = file.size()
    parts: list[bytes] = []
    while offset < end:
        part = file.pread(min(CHUNK_BYTES, end - offset), offset)
        if not part:
            raise OSError(errno.EIO, f"no bytes at offset {offset} of {end}")
        parts.append(part)
        offset += len(part)
    return b"".join(parts)


def write_all(file: File, data: bytes, offset: int) -> None:
    """Write all of ``data`` at ``offset`` (bytes), in as many calls as needed."""
    while data:
        taken = _some(file.pwrite(data, offset))
        offset += taken
        data = data[taken:]


def append_remainder(file: File, data: bytes, taken: int) -> None:
    """Complete an append of ``data`` of which the first call has written ``taken`` bytes."""
    while data := data[_some(taken) :]:
        taken = file.append(data)


def _some(taken: int) -> int:
    if taken < 1:
        raise OSError(errno.EIO, "a write took nothing and gave no reason")
    return taken
