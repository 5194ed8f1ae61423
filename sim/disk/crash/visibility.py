"""Visibility: whether a program could observe that a piece has reached the platter."""

from __future__ import annotations

from sim.disk.cache.inode import Inode
from sim.disk.cache.inode_table import Inodes
from sim.disk.crash.micro_operation import (
    ForgetName,
    MicroOperation,
    UnlinkName,
    WriteBlock,
)


def repeats(micro: MicroOperation, inodes: Inodes) -> bool:
    """Return whether a piece changes nothing: a write of equal bytes, a name that is gone."""
    match micro:
        case WriteBlock():
            inode = inodes.get(micro.number)
            return inode is not None and inode.stored(micro.offset, len(micro.data)) == micro.data
        case UnlinkName() | ForgetName():
            holder = inodes.get(micro.directory)
            return holder is not None and holder.entries.get(micro.name) != micro.number
        case _:
            return False


def tears(micro: WriteBlock, inodes: Inodes) -> list[int]:
    """Return the sizes of those torn forms of a write that differ from one another."""
    old = inodes[micro.number].stored(micro.offset, len(micro.data))
    sizes = [place + 1 for place, byte in enumerate(micro.data) if byte != old[place]]
    return sizes[:-1]


def is_visible(micro: WriteBlock, inode: Inode | None) -> bool:
    """Return whether the file has a name, and extends to this write."""
    return inode is not None and bool(inode.links) and micro.offset < inode.size


def is_hidden(micro: MicroOperation, inode: Inode | None) -> bool:
    """Return whether this is data beyond the end of its file."""
    return isinstance(micro, WriteBlock) and inode is not None and micro.offset >= inode.size
