"""``os.stat_result`` of an inode."""

from __future__ import annotations

import os
from typing import Final

from sim.disk.inode import BLOCK_BYTES, SECTOR_BYTES, Inode

DEVICE: Final = 0x5043
_SECOND_NS: Final = 1_000_000_000
_SECTORS: Final = BLOCK_BYTES // SECTOR_BYTES


def stat_result(inode: Inode) -> os.stat_result:
    """Return what ``stat`` tells of ``inode``.

    ``st_blocks`` counts the blocks that were written, in units of 512 bytes; a directory
    is one block long.
    """
    is_directory = inode.is_directory
    times_ns = inode.atime_ns, inode.mtime_ns, inode.ctime_ns
    return os.stat_result(
        (
            inode.mode,
            inode.number,
            DEVICE,
            inode.links,
            inode.uid,
            inode.gid,
            BLOCK_BYTES if is_directory else inode.size,
            *[time_ns // _SECOND_NS for time_ns in times_ns],
            # As CPython adds them up, to the last bit.
            *[time_ns // _SECOND_NS + 1e-9 * (time_ns % _SECOND_NS) for time_ns in times_ns],
            *times_ns,
            BLOCK_BYTES,
            _SECTORS if is_directory else len(inode.blocks) * _SECTORS,
            0,
        )
    )
