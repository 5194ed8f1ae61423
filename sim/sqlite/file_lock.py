"""Locks on database files, between the connections to one disk.

The rules are those of SQLite's unix VFS (``unixLock`` and ``unixUnlock`` in
``os_unix.c``, and sqlite.org ``lockingv3.html``): many may hold SHARED; one of them may
go on to RESERVED, PENDING and EXCLUSIVE; from PENDING on nobody new gets SHARED.

A lock dies with its process, so the connections of a dead one are passed over.
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
    """An open database file; ``level`` is the lock it holds, one of the above."""

    level: int

    @property
    def is_off(self) -> bool:
        """Whether its process is dead."""
        ...


class FileLock:
    """The lock of one inode: everybody who holds it at some level."""

    __slots__ = ("holders",)

    def __init__(self) -> None:
        self.holders: list[LockHolder] = []

    def level(self) -> int:
        """Return the highest level that anybody alive holds."""
        return max((holder.level for holder in self.holders if not holder.is_off), default=NONE)

    def acquire(self, asking: LockHolder, wanted: int) -> bool:
        """Raise the level of ``asking`` to ``wanted``; False if others are in the way.

        Who meets readers on the way to EXCLUSIVE is left with PENDING, so that no new
        ones come.
        """
        if asking.level >= wanted:
            return True
        others = [other.level for other in self.holders if other is not asking and not other.is_off]
        highest = max(others, default=NONE)
        if highest >= (PENDING if wanted == SHARED else RESERVED):
            return False
        if asking.level == NONE:
            self.holders.append(asking)
        if wanted == EXCLUSIVE and others:
            asking.level = PENDING
            return False
        asking.level = wanted
        return True

    def release(self, asking: LockHolder, wanted: int) -> None:
        """Lower the level of ``asking`` to ``wanted``, SHARED or NONE."""
        if asking.level <= wanted:
            return
        asking.level = wanted
        if wanted == NONE:
            self.holders.remove(asking)


_LOCKS: Final[WeakKeyDictionary[Disk, dict[int, FileLock]]] = WeakKeyDictionary()


def file_lock(disk: Disk, inode: int) -> FileLock:
    """Return the one lock of this inode, whoever asks; it lasts as long as the disk."""
    locks = _LOCKS.get(disk)
    if locks is None:
        locks = _LOCKS[disk] = {}
    lock = locks.get(inode)
    if lock is None:
        lock = locks[inode] = FileLock()
    return lock
