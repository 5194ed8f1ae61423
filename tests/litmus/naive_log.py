"""The rename that btrfs logs at once: ``docs/disk.md``, section "Order"."""

from __future__ import annotations

import stat
from collections.abc import Sequence

from sim.disk.cache.operation import (
    Allocate,
    Create,
    Link,
    Operation,
    Rename,
    Resize,
    Sync,
    Unlink,
    Write,
)
from tests.litmus.naive_order import is_metadata
from tests.litmus.naive_piece import Entry, Name, Piece, Size, Sized


def logged_rename(calls: Sequence[Operation]) -> int | None:
    """Return the index of the rename for which later metadata waits now, or None."""
    for index in range(len(calls) - 1, -1, -1):
        call = calls[index]
        if isinstance(call, Sync):
            return None
        if isinstance(call, Rename) and _is_in_log(call.inode, calls[:index]):
            return None if _is_undone(call, calls[index + 1 :]) else index
    return None


def _is_in_log(inode: int, calls: Sequence[Operation]) -> bool:
    """Return whether a file was changed and then synced, with no barrier on another since."""
    is_synced = False
    for call in reversed(calls):
        if isinstance(call, Sync):
            if call.inode != inode:
                return False
            is_synced = True
        elif is_synced and isinstance(call, Create | Write | Resize | Allocate):
            is_directory = isinstance(call, Create) and stat.S_ISDIR(call.mode)
            if call.inode == inode and not is_directory:
                return True
    return False


def _is_undone(rename: Rename, later: Sequence[Operation]) -> bool:
    """Return whether a later call changes a name of the file, or one of its two names."""
    return any(
        call.inode == rename.inode or entries(call) & entries(rename)
        for call in later
        if isinstance(call, Link | Unlink | Rename)
    )


def entries(call: Link | Unlink | Rename) -> set[Entry]:
    """Return the directory entries that a call adds or removes."""
    found = {(call.directory, call.name)}
    if isinstance(call, Rename):
        found.add((call.to_directory, call.to_name))
    return found


def waits_for(rename: int, first: Piece, then: Piece) -> bool:
    """Return whether ``then`` waits for ``first``, as the new name of call ``rename``."""
    if not isinstance(first, Name) or first.call != rename or first.gives is None:
        return False
    if then.call <= rename or then.inode == first.inode:
        return False
    is_written = isinstance(then, Size) and then.sized in (Sized.WRITE, Sized.BLOCK)
    return is_metadata(then) or is_written
