"""The order in which files were changed, synced and replaced, as far as btrfs depends on it.

btrfs writes a file to its log when the file is synced, and a commit in the background empties the
log. So of two synced files, the one that was synced last is in the log if the other one is. A
rename of a file that is in the log is logged as a whole (docs/disk.md, classes B8 and B9), and at
once, so that later changes do not overtake it. A file that a rename has replaced, and that has no
other name, is not logged at all (class B19).
"""

from __future__ import annotations

from stat import S_ISDIR
from typing import Final

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

_NO_INODE: Final = 0


class LogOrder:
    """The changes and barriers of the files of one lifetime, by the numbers of its operations.

    The lifetime after a kill begins without them, which allows more.
    """

    __slots__ = (
        "_barriers", "_changed", "_last_other", "_logged", "_logged_rename", "_replaced", "_synced",
    )  # fmt: skip

    def __init__(self) -> None:
        self._changed: dict[int, int] = {}
        # The last change of each file that a barrier on the file has covered.
        self._logged: dict[int, int] = {}
        self._barriers: dict[int, int] = {}
        self._replaced: set[int] = set()
        # The inode of the last barrier, and the number of the last barrier on any other inode.
        self._synced = _NO_INODE
        self._last_other = 0
        # The rename that was logged at once, and its number, until a barrier or another change.
        self._logged_rename: tuple[int, Rename] | None = None

    def copy(self) -> LogOrder:
        """Return a copy, which advances by itself."""
        copy = LogOrder()
        copy._changed = dict(self._changed)
        copy._logged = dict(self._logged)
        copy._barriers = dict(self._barriers)
        copy._replaced = set(self._replaced)
        copy._synced, copy._last_other = self._synced, self._last_other
        copy._logged_rename = self._logged_rename
        return copy

    def advance(self, operation: Operation, number: int) -> bool:
        """Read operation ``number`` of the journal; return whether it undoes a logged rename."""
        undoes = isinstance(operation, Link | Unlink | Rename) and self._undoes(operation)
        if undoes or isinstance(operation, Sync | FailedSync):
            self.end_rename()
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
            case FailedSync():
                self._follow(_NO_INODE)
                self._last_other = number
            case Rename(inode=inode, replaced=replaced, links_left=links_left):
                if replaced and not links_left:
                    self._replaced.add(replaced)
                if self._is_in_log(inode):
                    self._logged_rename = number, operation
            case _:
                pass
        return undoes

    def _follow(self, inode: int) -> None:
        """Note that the last barrier is on ``inode``."""
        if inode != self._synced:
            self._last_other = max(self._last_other, self._barriers.get(self._synced, 0))
            self._synced = inode

    def _is_in_log(self, inode: int) -> bool:
        """Return whether a file is in the log if anything is.

        Only barriers on this file came after its last change but one on it has covered. So a
        commit in the background has left the file to that barrier, or has left nothing to it.
        """
        return self._logged.get(inode, 0) > self._last_other

    def _undoes(self, change: Link | Unlink | Rename) -> bool:
        """Return whether a change of names is one of the file or the names of the logged rename.

        The log has only the last names of a file.
        """
        if self._logged_rename is None:
            return False
        _, rename = self._logged_rename
        names = _names(rename)
        return change.inode == rename.inode or not names.isdisjoint(_names(change))

    def end_rename(self) -> None:
        """Let later changes overtake the logged rename."""
        self._logged_rename = None

    def rename_before(self, inode: int) -> tuple[int, int] | None:
        """Return the rename that changes of ``inode`` cannot overtake: operation and inode."""
        if self._logged_rename is None:
            return None
        number, rename = self._logged_rename
        return None if rename.inode == inode else (number, rename.inode)

    def covers_nothing(self, sync: Sync) -> bool:
        """Return whether a barrier is on an inode whose last name a rename has taken."""
        return sync.inode in self._replaced

    def is_logged_since(self, inode: int, other: int) -> bool:
        """Return whether a file was changed, and then synced, after the last barrier on another.

        A commit may come between, but then the log has neither of them until the next barrier on
        one of them (``overtaken.with_losses_of``).
        """
        return self._logged.get(inode, 0) > self._barriers.get(other, 0)


def _names(change: Link | Unlink | Rename) -> set[tuple[int, str]]:
    """Return the names that an operation changes, each with its directory."""
    names = {(change.directory, change.name)}
    if isinstance(change, Rename):
        names.add((change.to_directory, change.to_name))
    return names
