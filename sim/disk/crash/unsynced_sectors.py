"""The unsynced sectors of a journal, of which only so many can be lost one by one."""

from __future__ import annotations

from sim.disk.cache.inode import SECTOR_BYTES
from sim.disk.cache.operation import Operation, Sync, Write


class UnsyncedSectors:
    """Counts the sectors of 512 bytes, by inode, that were written and not synced.

    A barrier on a file takes off all of its sectors, ``sync(2)`` those of all files. ``most`` is
    the largest number, 0 if there is none. One file can have two thirds of it: so a file that is
    never synced leaves some for the others.
    """

    __slots__ = ("_most", "_of_inode")

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._of_inode: dict[int, int] = {}

    def copy(self) -> UnsyncedSectors:
        """Return an independent copy."""
        copy = UnsyncedSectors(self._most)
        copy._of_inode = self._of_inode.copy()
        return copy

    @property
    def in_all(self) -> int:
        """The unsynced sectors of all files."""
        return sum(self._of_inode.values())

    def advance(self, operation: Operation) -> bool:
        """Count an operation; return False for a write above the limit, which is not counted."""
        if isinstance(operation, Write):
            sectors = -(-len(operation.data) // SECTOR_BYTES)
            of_file = self._of_inode.get(operation.inode, 0) + sectors
            if self._most and (3 * of_file > 2 * self._most or self.in_all + sectors > self._most):
                return False
            self._of_inode[operation.inode] = of_file
        elif isinstance(operation, Sync):
            if operation.inode:
                self._of_inode.pop(operation.inode, None)
            else:
                self._of_inode.clear()
        return True
