"""The order in which files were changed, synced and replaced, as far as btrfs depends on it.

btrfs writes a file to its log when the file is synced, and a commit in the background empties the
log. So of two synced files, the one that was synced last is in the log if the other one is. A
rename of a file that is in the log is logged as a whole (docs/disk.md, classes B8 and B9). A file
that a rename has replaced, and that has no other name, is not logged at all (class B19).
"""

from __future__ import annotations

from sim.disk.cache.operation import Allocate, Create, Operation, Rename, Resize, Sync, Write


class LogOrder:
    """The changes and barriers of the files of one lifetime, by the numbers of its operations.

    The lifetime after a kill begins without them, which allows more.
    """

    __slots__ = ("_barriers", "_changed", "_logged", "_replaced")

    def __init__(self) -> None:
        self._changed: dict[int, int] = {}
        # The last change of each file that a barrier on the file has covered.
        self._logged: dict[int, int] = {}
        self._barriers: dict[int, int] = {}
        self._replaced: set[int] = set()

    def copy(self) -> LogOrder:
        """Return a copy, which advances by itself."""
        copy = LogOrder()
        copy._changed = dict(self._changed)
        copy._logged = dict(self._logged)
        copy._barriers = dict(self._barriers)
        copy._replaced = set(self._replaced)
        return copy

    def advance(self, operation: Operation, number: int) -> None:
        """Read operation ``number`` of the journal."""
        match operation:
            case Create() | Write() | Resize() | Allocate():
                self._changed[operation.inode] = number
            case Sync(inode=inode):
                self._barriers[inode] = number
                if inode in self._changed:
                    self._logged[inode] = self._changed[inode]
            case Rename(replaced=replaced, links_left=0) if replaced:
                self._replaced.add(replaced)

    def covers_nothing(self, sync: Sync) -> bool:
        """Return whether a barrier is on an inode whose last name a rename has taken."""
        return sync.inode in self._replaced

    def is_logged_since(self, inode: int, other: int) -> bool:
        """Return whether a file was changed, and then synced, after the last barrier on another.

        A commit may come between, but then the log has neither of them until the next barrier on
        one of them (``overtaken.with_losses_of``).
        """
        return self._logged.get(inode, 0) > self._barriers.get(other, 0)
