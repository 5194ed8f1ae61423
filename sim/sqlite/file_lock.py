"""Locks on database files, between the connections to one disk.

The rules are those of SQLite's unix VFS (``unixLock`` and ``unixUnlock`` in
``os_unix.c``, and sqlite.org ``lockingv3.html``): many connections may hold SHARED; one of
them may go on to RESERVED, PENDING and EXCLUSIVE; from PENDING on no other gets SHARED.

A lock ends with its process, so the connections of a dead process do not count.
"""

from __future__ import annotations

from typing import Final, Protocol
from weakref import WeakKeyDictionary

from sim.disk.disk import Disk

NONE: Final = 0
SHARED: Final = 1
RESERVED: Final = 2
PENDING: Final = 3
EXCLUSIVE: Final = 4


class LockHolder(Protocol):
    """An open database file; ``level`` is the lock that it holds, one of the above."""

    level: int

    @property
    def is_off(self) -> bool:
        """Whether its process is dead."""
        ...


class FileLock:
    """The lock of one inode, with all its holders."""

    __slots__ = ("holders",)

    def __init__(self) -> None:
        self.holders: list[LockHolder] = []

    def level(self) -> int:
        """Return the highest level that a live connection holds."""
        return max((holder.level for holder in self.holders if not holder.is_off), default=NONE)

    def acquire(self, holder: LockHolder, wanted: int) -> bool:
        """Raise the level of ``holder`` to ``wanted``; return False if another is in the way.

        A holder that meets readers on the way to EXCLUSIVE is left with PENDING, so that
        no new readers come.
        """
        if holder.level >= wanted:
            return True
        others = [other.level for other in self.holders if other is not holder and not other.is_off]
        highest = max(others, default=NONE)
        if highest >= (PENDING if wanted == SHARED else RESERVED):
            return False
        if holder.level == NONE:
            self.holders.append(holder)
        if wanted == EXCLUSIVE and others:
            holder.level = PENDING
            return False
        holder.level = wanted
        return True

    def release(self, holder: LockHolder, wanted: int) -> None:
        """Lower the level of ``holder`` to ``wanted``, SHARED or NONE."""
        assert wanted in {NONE, SHARED}
        if holder.level <= wanted:
            return
        assert holder in self.holders
        holder.level = wanted
        if wanted == NONE:
            self.holders.remove(holder)


_LOCKS: Final[WeakKeyDictionary[Disk, dict[int, FileLock]]] = WeakKeyDictionary()


def file_lock(disk: Disk, inode: int) -> FileLock:
    """Return the lock of an inode, which lasts as long as the disk."""
    return _LOCKS.setdefault(disk, {}).setdefault(inode, FileLock())
