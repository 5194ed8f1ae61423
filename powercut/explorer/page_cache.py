"""The page cache of a recorded lifetime, operation by operation: the disk that a kill leaves."""

from __future__ import annotations

from sim.disk.cache.inode_table import Inodes, InodeTable
from sim.disk.cache.key import key_of
from sim.disk.cache.operation import DropPages, FailedSync, Operation, Sync, Write
from sim.disk.crash.unsynced import Unsynced


def changes_without_pieces(operation: Operation, unsynced: Unsynced, *, nested: bool) -> bool:
    """Return whether a kill after an operation may leave another disk, although it has no piece.

    A barrier that fails has none, nor have dropped pages, and a write to an unwritten block. If
    the recovery is crashed as well (``nested``), a barrier may allow more in it, also by the order
    of later changes. ``unsynced`` has read the operation already.
    """
    is_write = isinstance(operation, Write)
    changes = isinstance(operation, FailedSync | DropPages) or (is_write and bool(unsynced.lost))
    orders_later = isinstance(operation, Sync) and unsynced.has_log
    return changes or (nested and (unsynced.allows_more or orders_later))


class PageCache:
    """Carries out the operations of a journal on ``cached``, as the running disk did.

    ``key`` is the key of its state (``sim/disk/cache/key.py``). It differs from the platter
    with all unsynced pieces after a failed barrier, whose data is in the page cache only.
    """

    def __init__(self, cached: Inodes, key: int | None = None) -> None:
        self._table = InodeTable(cached, key_of(cached.values()) if key is None else key)

    @property
    def inodes(self) -> Inodes:
        """Its inodes, as a map that never changes."""
        return self._table.rebase()

    @property
    def key(self) -> int:
        self._table.rebase()
        assert self._table.key is not None
        return self._table.key

    def advance(self, operation: Operation, unsynced: Unsynced) -> None:
        """Carry out an operation, which ``unsynced`` has read already."""
        operation.apply(self._table)
        if isinstance(operation, DropPages):
            self._table.own(operation.inode).replace_blocks(unsynced.dropped)

    def copy(self) -> PageCache:
        """Return a copy, which advances by itself."""
        return PageCache(self.inodes, self.key)
