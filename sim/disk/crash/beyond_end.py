"""Bytes beyond the end of a file, which a power cut may leave on the platter.

They are data that became durable without the size that shows it, or bytes that a truncation cut
off, whose zeros were lost. While the machine runs they stay: the size may still follow. After a
power cut they are zero, so every disk that a boot finds has lost them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from sim.disk.cache.inode_table import InodeTable
from sim.disk.crash.micro_operation import (
    FreeBlocks,
    MicroOperation,
    SetSize,
    WriteBlock,
    ZeroTail,
)

Ends = Mapping[int, int]
"""Files that may have bytes beyond their end, each with the end of those bytes."""


def stored_until(micro: MicroOperation) -> int:
    """Return the end of the bytes that a file may have beyond its size by this piece; or 0."""
    match micro:
        case WriteBlock():
            return micro.offset + len(micro.data)
        case ZeroTail():
            return micro.end
        case FreeBlocks():
            return sys.maxsize
        case SetSize(size=size, cut=cut):
            return 0 if cut == size else sys.maxsize
        case _:
            return 0


def ends_of(micros: Iterable[MicroOperation], before: Ends) -> Ends:
    """Return the files that may have bytes beyond their end if some of these pieces survive.

    ``before`` are those of the platter.
    """
    ends = dict(before)
    for micro in micros:
        end = stored_until(micro)
        if end:
            ends[micro.number] = max(end, ends.get(micro.number, 0))
    return ends


def drop_beyond_end(table: InodeTable, ends: Ends) -> None:
    """Drop the bytes beyond the ends of these files, as the boot after a power cut does."""
    for number, end in ends.items():
        inode = table.get(number)
        if inode is not None and inode.size < end and inode.stored_end > inode.size:
            table.own(number).cut(inode.size)
