"""``os.stat_result`` of an inode."""

from __future__ import annotations

import os
from typing import Final

from sim.disk.cache.inode import BLOCK_BYTES, SECTOR_BYTES, Inode

DEVICE: Final = 0x5043
_SECOND_NS: Final = 1_000_000_000
_SECTORS: Final = BLOCK_BYTES // SECTOR_BYTES


def stat_result(inode: Inode) -> os.stat_result:
    """Return what ``stat`` tells of ``inode``.

    ``st_blocks`` counts the blocks that were written, in units of 512 bytes; a directory
    is one block long.
    """
    is_directory = inode.is_directory
    accessed, accessed_ns = divmod(inode.atime_ns, _SECOND_NS)
    modified, modified_ns = divmod(inode.mtime_ns, _SECOND_NS)
    changed, changed_ns = divmod(inode.ctime_ns, _SECOND_NS)
    return os.stat_result(
        (
            inode.mode,
            inode.number,
            DEVICE,
            inode.links,
            inode.uid,
            inode.gid,
            BLOCK_BYTES if is_directory else inode.size,
            accessed,
            modified,
            changed,
            # As CPython adds them up, to the last bit.
            accessed + 1e-9 * accessed_ns,
            modified + 1e-9 * modified_ns,
            changed + 1e-9 * changed_ns,
            inode.atime_ns,
            inode.mtime_ns,
            inode.ctime_ns,
            BLOCK_BYTES,
            _SECTORS if is_directory else len(inode.blocks) * _SECTORS,
            0,
        )
    )
