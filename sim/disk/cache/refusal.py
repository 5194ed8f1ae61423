"""Checks of an operation from elsewhere, before it is carried out on a table of inodes."""

from __future__ import annotations

import stat
from typing import Final, assert_never

from sim.disk.cache.inode import BLOCK_BYTES, FORMAT, Inode
from sim.disk.cache.inode_table import InodeTable
from sim.disk.cache.operation import (
    Allocate,
    Create,
    DropPages,
    FailedSync,
    Link,
    Operation,
    Rename,
    Resize,
    SetAttributes,
    Sync,
    Unlink,
    Write,
)

NAME_MAX: Final = 255
"""The bytes of the longest name of a directory entry."""
FILE_MAX_BYTES: Final = ((1 << 32) - 1) * BLOCK_BYTES
"""The largest file of ext4 with blocks of 4,096 bytes."""
INODE_MAX: Final = (1 << 63) - 1
ID_MAX: Final = (1 << 32) - 1
"""The largest number of a user or a group."""
_MOST_MODE: Final = 0o177777
_FORMATS: Final = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)


def refusal(operation: Operation, table: InodeTable) -> str:
    """Return the reason why ``operation`` cannot happen to ``table``; empty if it can.

    The calls of ``os`` never make such an operation, so only one from elsewhere is checked.
    """
    inode = table.get(operation.inode)
    if isinstance(operation, Create):
        return _of_create(operation, inode, table)
    if isinstance(operation, Sync) and not operation.inode:
        return ""
    if inode is None:
        return f"there is no inode {operation.inode}"
    match operation:
        case Write() | Resize() | Allocate():
            reason = _of_content(operation, inode)
        case Link():
            reason = _of_link(operation, inode, table)
        case Unlink(directory=directory, name=name):
            reason = _of_name(table, directory, name, meaning=inode.number)
            if inode.entries:
                reason = f"directory {inode.number} is not empty"
        case Rename():
            reason = _of_rename(operation, inode, table)
        case SetAttributes(mode=mode, uid=uid, gid=gid):
            reason = refusal_of_attributes(mode, uid, gid)
            if mode & FORMAT != inode.mode & FORMAT:
                reason = f"mode {mode:#o} changes the type of inode {inode.number}"
        case Sync() | FailedSync() | DropPages():
            reason = _of_pages(operation)
        case _:
            assert_never(operation)
    return reason


def is_name(name: str) -> bool:
    """Return whether ``name`` can be a directory entry."""
    if name in {"", ".", ".."} or "/" in name or "\0" in name:
        return False
    return len(name.encode("utf-8", "surrogateescape")) <= NAME_MAX


def _of_create(create: Create, inode: Inode | None, table: InodeTable) -> str:
    if not 0 < create.inode <= INODE_MAX:
        return f"an inode cannot have the number {create.inode}"
    if inode is not None:
        return f"inode {create.inode} exists already"
    if reason := refusal_of_attributes(create.mode, create.uid, create.gid):
        return reason
    if create.mode & FORMAT not in _FORMATS:
        return f"mode {create.mode:#o} is not of a file, a directory or a symbolic link"
    if stat.S_ISLNK(create.mode) != bool(create.link_text):
        return f"mode {create.mode:#o} and link_text={create.link_text!r} contradict each other"
    return _of_name(table, create.directory, create.name, meaning=0) if create.name else ""


def refusal_of_attributes(mode: int, uid: int, gid: int) -> str:
    """Return the reason why no inode has this mode and this owner; empty if one can."""
    if not 0 <= mode <= _MOST_MODE:
        return f"mode {mode:#o} is more than a type and permission bits"
    if not (0 <= uid <= ID_MAX and 0 <= gid <= ID_MAX):
        return f"uid={uid} and gid={gid} are not numbers from 0 to {ID_MAX}"
    return ""


def _of_content(change: Write | Resize | Allocate, inode: Inode) -> str:
    if not inode.is_file:
        return f"inode {inode.number} is not a file"
    if inode.size != change.size_before:
        return f"inode {inode.number} has {inode.size} bytes, not {change.size_before}"
    match change:
        case Write(offset=offset, data=data):
            if offset < 0 or not data:
                return f"{len(data)} bytes at offset {offset} are not a write"
            least, size = 1, offset + len(data)
        case Resize(size=size):
            least = 0
        case Allocate(end=size):
            least = 1
        case _:
            assert_never(change)
    return "" if least <= size <= FILE_MAX_BYTES else f"a file cannot have {size} bytes"


def _of_link(link: Link, inode: Inode, table: InodeTable) -> str:
    if inode.is_directory:
        return f"inode {inode.number} is a directory"
    if not (inode.is_linked or inode.number in table.never_named):
        return f"inode {inode.number} has lost all its names"
    return _of_name(table, link.directory, link.name, meaning=0)


def _of_pages(operation: Sync | FailedSync | DropPages) -> str:
    start, end = operation.start, operation.end
    is_to_end = isinstance(operation, DropPages) and not end
    if start >= 0 and (start <= end or is_to_end):
        return ""
    return f"there are no bytes from {start} to {end}"


def _of_rename(rename: Rename, inode: Inode, table: InodeTable) -> str:
    _, number, directory, name, _, to_directory, to_name, replaced, links_left, _ = rename
    reason = _of_name(table, directory, name, meaning=number)
    reason = reason or _of_name(table, to_directory, to_name, meaning=replaced)
    if reason:
        return reason
    loser = table.get(replaced) if replaced else None
    if loser is not None and (
        loser is inode or loser.entries or loser.is_directory != inode.is_directory
    ):
        return f"inode {number} cannot replace inode {replaced}"
    if links_left != table.links_left(replaced):
        return f"inode {replaced} keeps {table.links_left(replaced)} names, not {links_left}"
    if inode.is_directory and _is_within(table, to_directory, number):
        return f"directory {number} cannot move into itself"
    return ""


def _of_name(table: InodeTable, directory: int, name: str, *, meaning: int) -> str:
    """Return why ``name`` does not mean inode ``meaning``, 0 for a name that is free."""
    holder = table.get(directory)
    if holder is None or not (holder.is_directory and holder.is_linked):
        return f"there is no directory {directory}"
    if not is_name(name):
        return f"{name!r} cannot be the name of a directory entry"
    found = holder.entries.get(name, 0)
    if found == meaning:
        return ""
    return f"{name!r} in directory {directory} means inode {found}, not {meaning} (0 is free)"


def _is_within(table: InodeTable, directory: int, ancestor: int) -> bool:
    while directory != ancestor:
        inode = table.get(directory)
        if inode is None or inode.parent == directory:
            return False
        directory = inode.parent
    return True
