"""What btrfs logs, and when, as far as order depends on it: ``docs/disk.md``, "Order"."""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence

from sim.disk.cache.operation import (
    Allocate,
    Create,
    FailedSync,
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

Calls = Mapping[int, Operation]
"""The calls so far, by number, in their order."""


def waits_for(calls: Calls, first: Piece, then: Piece) -> bool:
    """Return whether ``then`` waits for ``first``, the new name of a logged rename."""
    rename = calls.get(first.call)
    if not isinstance(rename, Rename) or not isinstance(first, Name) or first.gives is None:
        return False
    between = [call for number, call in calls.items() if first.call < number <= then.call]
    if not between or any(isinstance(call, Sync) for call in between):
        return False
    is_written = isinstance(then, Size) and then.sized in (Sized.WRITE, Sized.BLOCK)
    if then.inode == first.inode or not (is_metadata(then) or is_written):
        return False
    before = [call for number, call in calls.items() if number < first.call]
    after = [call for number, call in calls.items() if number > first.call]
    if any(isinstance(call, FailedSync) for call in after):
        return False
    return _is_in_log(rename.inode, before) and not (
        _is_undone(rename, after) or _may_be_logged(then, calls)
    )


def waits_for_commit(calls: Calls, piece: Piece) -> bool:
    """Return whether a piece is a truncation that waits for all earlier metadata."""
    if not (isinstance(piece, Size) and piece.is_set):
        return False
    names_are_synced = False
    for call in calls.values():
        if isinstance(call, Sync) and call.inode == piece.inode:
            names_are_synced = True
        if isinstance(call, FailedSync | Link | Unlink | Rename) and call.inode == piece.inode:
            names_are_synced = False
        if isinstance(call, Rename) and call.replaced == piece.inode:
            if not call.links_left:
                return False
            names_are_synced = False
    return names_are_synced


def _is_in_log(inode: int, calls: Sequence[Operation]) -> bool:
    """Return whether a file was changed and then synced, and no barrier since failed or was
    on another file.
    """
    is_synced = False
    for call in reversed(calls):
        if isinstance(call, FailedSync):
            return False
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
        call.inode == rename.inode or _entries(call) & _entries(rename)
        for call in later
        if isinstance(call, Link | Unlink | Rename)
    )


def _entries(call: Link | Unlink | Rename) -> set[Entry]:
    """Return the directory entries that a call adds or removes."""
    found = {(call.directory, call.name)}
    if isinstance(call, Rename):
        found.add((call.to_directory, call.to_name))
    return found


def _may_be_logged(piece: Piece, calls: Calls) -> bool:
    """Return whether a later barrier was on an inode that a piece changes."""
    directories = piece.directories if isinstance(piece, Name) else set[int]()
    changed = {piece.inode, *directories}
    return any(
        number > piece.call and isinstance(call, Sync) and call.inode in changed
        for number, call in calls.items()
    )
