"""The order in which files were changed, synced and replaced, as far as btrfs depends on it.

btrfs writes a file to its log when the file is synced, and a commit in the background empties the
log. So of two synced files, the one that was synced last is in the log if the other one is. A
rename of a file that is in the log is logged as a whole (docs/disk.md, classes B8 and B9), and at
once, so that later changes do not overtake it. A file that a rename has replaced, and that has no
other name, is not logged at all (class B19). A file whose names are as its last barrier left them
is logged by no other call, so its truncation becomes durable by a commit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from stat import S_ISDIR
from typing import Final, NamedTuple

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
from sim.disk.crash.micro_operation import MicroOperation, SetSize, directories_of

_NO_INODE: Final = 0


class _LoggedRename(NamedTuple):
    """A rename, operation ``number``, that was logged at once.

    Changes before the next barrier, which is operation ``end``, do not overtake it.
    """

    number: int
    rename: Rename
    end: int = sys.maxsize


class LogOrder:
    """The changes and barriers of the files of one lifetime, by the numbers of its operations.

    The lifetime after a kill begins without them, which allows more.
    """

    __slots__ = (
        "_barriers", "_changed", "_held", "_last_other", "_logged", "_logged_renames", "_named",
        "_replaced", "_synced",
    )  # fmt: skip

    def __init__(self) -> None:
        self._changed: dict[int, int] = {}
        # The last change of each file that a barrier on the file has covered.
        self._logged: dict[int, int] = {}
        self._barriers: dict[int, int] = {}
        # The last change of the names of each inode, or a barrier that failed, if that is later.
        self._named: dict[int, int] = {}
        self._replaced: set[int] = set()
        # The files with a truncation that waited for a commit when the lifetime before was killed.
        self._held: set[int] = set()
        # The inode of the last barrier, and the number of the last barrier on any other inode.
        self._synced = _NO_INODE
        self._last_other = 0
        self._logged_renames: list[_LoggedRename] = []

    def copy(self) -> LogOrder:
        """Return a copy, which advances by itself."""
        copy = LogOrder()
        copy._changed = dict(self._changed)
        copy._logged = dict(self._logged)
        copy._barriers = dict(self._barriers)
        copy._named = dict(self._named)
        copy._replaced = set(self._replaced)
        copy._held = set(self._held)
        copy._synced, copy._last_other = self._synced, self._last_other
        copy._logged_renames = list(self._logged_renames)
        return copy

    def hold(self, inode: int) -> None:
        """Note that a truncation of the lifetime before waits for a commit."""
        self._held.add(inode)

    def advance(self, operation: Operation, number: int) -> bool:
        """Read operation ``number`` of the journal.

        Return whether earlier changes may overtake others from now on that they could not.
        """
        match operation:
            case Create(mode=mode) if S_ISDIR(mode):
                pass
            case Create() | Write() | Resize() | Allocate():
                self._changed[operation.inode] = number
            case Sync(inode=inode):
                self._follow(inode)
                self._barriers[inode] = number
                if inode in self._changed:
                    self._logged[inode] = self._changed[inode]
                return self._end_renames(inode, number)
            case FailedSync(inode=inode):
                self._last_other = number
                ended, self._logged_renames = self._logged_renames, []
                return self._name([inode], number) | bool(ended)
            case Link(inode=inode) | Unlink(inode=inode):
                return self._name([inode], number) | self._undo(operation)
            case Rename(inode=inode, replaced=replaced, links_left=links_left):
                allows_more = self._name([inode, replaced], number) | self._undo(operation)
                if replaced and not links_left:
                    self._replaced.add(replaced)
                if self._is_in_log(inode):
                    self._logged_renames.append(_LoggedRename(number, operation))
                return allows_more
            case _:
                pass
        return False

    def _follow(self, inode: int) -> None:
        """Note that the last barrier is on ``inode``."""
        if inode != self._synced:
            self._last_other = max(self._last_other, self._barriers.get(self._synced, 0))
            self._synced = inode

    def _is_in_log(self, inode: int) -> bool:
        """Return whether a file is in the log if anything is.

        All barriers since its last synced change were on this file. So if a commit in the
        background has emptied the log after that change, nothing is in it.
        """
        return self._logged.get(inode, 0) > self._last_other

    def _name(self, inodes: Sequence[int], number: int) -> bool:
        """Note that operation ``number`` changes names of inodes.

        Return whether one of them has an unsynced change that waited for a commit until now.
        """
        frees = any(self._has_synced_names(each) and self._is_changed(each) for each in inodes)
        self._named.update(dict.fromkeys(inodes, number))
        return frees

    def _is_changed(self, inode: int) -> bool:
        """Return whether a file may have an unsynced truncation."""
        barrier = self._barriers.get(inode, 0)
        return self._changed.get(inode, 0) > barrier or (inode in self._held and not barrier)

    def _has_synced_names(self, inode: int) -> bool:
        """Return whether a barrier on a file has come since the last change of its names."""
        is_held = inode in self._held and inode not in self._named
        is_synced = is_held or self._barriers.get(inode, 0) > self._named.get(inode, 0)
        return is_synced and inode not in self._replaced

    def waits_for_commit(self, micro: MicroOperation) -> bool:
        """Return whether a piece becomes durable only by a commit, with all before it.

        That is a truncation. If the names of the file have changed, a barrier on a directory or
        on another file may log it with its size, and so may the change itself.
        """
        return isinstance(micro, SetSize) and self._has_synced_names(micro.number)

    def _undo(self, change: Link | Unlink | Rename) -> bool:
        """Forget the logged renames that a later change of names undoes; return whether it does.

        The log has only the last names of a file.
        """
        names = _names(change)
        kept = [
            each
            for each in self._logged_renames
            if each.rename.inode != change.inode and names.isdisjoint(_names(each.rename))
        ]
        undoes = len(kept) < len(self._logged_renames)
        self._logged_renames = kept
        return undoes

    def _end_renames(self, inode: int, number: int) -> bool:
        """Note that barrier ``number``, on an inode, ends the time of the last logged rename.

        Forget those that it makes durable; return whether there are others.
        """
        self._logged_renames = [
            each if each.end < number else each._replace(end=number)
            for each in self._logged_renames
            if inode not in {_NO_INODE, each.rename.inode, each.rename.to_directory}
        ]
        return bool(self._logged_renames)

    def rename_before(self, micro: MicroOperation) -> tuple[int, int] | None:
        """Return the rename that a piece cannot overtake: operation and inode.

        There is none if the piece is of the same file, or if a barrier that came after it was on
        an inode that it changes: then the log may have the piece.
        """
        for number, rename, end in self._logged_renames:
            if number < micro.operation < end and micro.number != rename.inode:
                return None if self._may_be_logged(micro) else (number, rename.inode)
        return None

    def _may_be_logged(self, micro: MicroOperation) -> bool:
        changed = micro.number, *directories_of(micro)
        return any(self._barriers.get(inode, 0) > micro.operation for inode in changed)

    def covers_nothing(self, sync: Sync) -> bool:
        """Return whether a barrier is on an inode whose last name a rename has taken."""
        return sync.inode in self._replaced

    def is_logged_since(self, inode: int, other: int) -> bool:
        """Return whether a file was changed, and then synced, after the last barrier on another.

        A commit may come between, but then the log has neither of them until the next barrier on
        one of them (``sides.with_losses_of``).
        """
        return self._logged.get(inode, 0) > self._barriers.get(other, 0)


def _names(change: Link | Unlink | Rename) -> set[tuple[int, str]]:
    """Return the names that an operation changes, each with its directory."""
    names = {(change.directory, change.name)}
    if isinstance(change, Rename):
        names.add((change.to_directory, change.to_name))
    return names
