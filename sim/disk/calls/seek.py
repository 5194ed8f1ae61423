"""Where data and holes lie in a file, for ``lseek`` with ``SEEK_DATA`` and ``SEEK_HOLE``."""

from __future__ import annotations

from sim.disk.cache.inode import BLOCK_BYTES, Inode


def next_data(inode: Inode, offset: int) -> int | None:
    """Return the first offset from ``offset`` (bytes) on that was written, or None."""
    first = offset // BLOCK_BYTES
    if first in inode.blocks:
        return offset
    later = min((index for index in inode.blocks if index > first), default=None)
    return None if later is None else later * BLOCK_BYTES


def next_hole(inode: Inode, offset: int) -> int:
    """Return the first offset from ``offset`` (bytes) on that was not; the end is a hole."""
    index = offset // BLOCK_BYTES
    while index in inode.blocks:
        index += 1
    return min(max(offset, index * BLOCK_BYTES), inode.size)
