"""Advisory locks of one running disk: ``flock(2)``, and the record locks behind ``lockf(3)``.

Locks conflict only with others of their kind and end with the lifetime of the disk. The lock of
``flock`` belongs to an open file description and ends with it. A record lock belongs to a
process and ends when the process closes *any* descriptor of the file, or to a description
(``F_OFD_SETLK``) and ends with it.
"""

from __future__ import annotations

import errno
import fcntl
from dataclasses import dataclass
from typing import Final

from sim.disk.os_error import os_error
from sim.errors import UnsupportedOperation

TO_THE_END: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class RecordLock:
    """A lock on the bytes from ``start`` up to, not including, ``end``."""

    owner: object
    exclusive: bool
    start: int
    end: int

    def overlaps(self, other: RecordLock) -> bool:
        return self.start < other.end and other.start < self.end

    def joined_with(self, other: RecordLock) -> RecordLock | None:
        """Return this lock and one of the same owner as one; None if they differ or do not meet."""
        meets = self.start <= other.end and other.start <= self.end
        if self.exclusive != other.exclusive or not meets:
            return None
        start, end = min(self.start, other.start), max(self.end, other.end)
        return RecordLock(self.owner, self.exclusive, start, end)

    def without(self, start: int, end: int) -> list[RecordLock]:
        """Return the parts of this lock outside the bytes ``start`` to ``end``."""
        pieces = ((self.start, min(self.end, start)), (max(self.start, end), self.end))
        return [
            RecordLock(self.owner, self.exclusive, first, last)
            for first, last in pieces
            if first < last
        ]


class LockTable:
    """All locks of one disk, by inode number. Owners are compared by identity.

    ``used`` is the set of inodes that were ever locked. As in Linux, record locks of one owner
    that meet are one lock, and they are searched owner by owner, each from the start of the file.
    """

    def __init__(self) -> None:
        self.used: set[int] = set()
        self._whole: dict[int, list[tuple[object, bool]]] = {}
        self._records: dict[int, list[RecordLock]] = {}

    def flock(self, inode: int, owner: object, operation: int) -> None:
        """Take, convert or release the lock of one open file description.

        ``operation`` is that of ``flock(2)``, with ``LOCK_NB`` or without. A conversion that fails
        loses the previous lock, as on Linux. Raises ``OSError`` (EWOULDBLOCK), or
        ``UnsupportedOperation`` where the real call would wait.
        """
        self.used.add(inode)
        wanted = operation & ~fcntl.LOCK_NB
        exclusive = wanted == fcntl.LOCK_EX
        held = self._whole.get(inode, [])
        if wanted != fcntl.LOCK_UN and (owner, exclusive) in held:
            return
        held = [lock for lock in held if lock[0] is not owner]
        self._whole[inode] = held
        if wanted == fcntl.LOCK_UN:
            return
        if any(exclusive or other for _, other in held):
            raise _conflict("flock", waiting=not operation & fcntl.LOCK_NB)
        held.append((owner, exclusive))

    def lock_record(self, inode: int, wanted: RecordLock, *, waiting: bool) -> None:
        """Take a record lock, in place of any lock of its owner on the same bytes.

        Raises ``OSError`` (EAGAIN), or ``UnsupportedOperation`` where it would wait.
        """
        self.used.add(inode)
        if self.is_record_locked(inode, wanted):
            raise _conflict("lockf", waiting=waiting)
        held = self._records.get(inode, [])
        own = [lock for lock in held if lock.owner is wanted.owner]
        others = [lock for lock in held if lock.owner is not wanted.owner]
        place = held.index(own[0]) if own else len(others)
        changed: list[RecordLock] = []
        for lock in own:
            joined = wanted.joined_with(lock)
            if joined is None:
                changed += lock.without(wanted.start, wanted.end)
            else:
                wanted = joined
        changed = sorted([*changed, wanted], key=lambda lock: lock.start)
        self._records[inode] = [*others[:place], *changed, *others[place:]]

    def unlock_record(self, inode: int, released: RecordLock) -> None:
        """Release the locks of an owner on these bytes, shared or exclusive."""
        kept: list[RecordLock] = []
        for lock in self._records.get(inode, []):
            own = lock.owner is released.owner
            kept += lock.without(released.start, released.end) if own else [lock]
        self._records[inode] = kept

    def is_record_locked(self, inode: int, wanted: RecordLock) -> bool:
        """Return whether the lock of another owner conflicts with ``wanted``."""
        return self.record_conflict(inode, wanted) is not None

    def record_conflict(self, inode: int, wanted: RecordLock) -> RecordLock | None:
        """Return the first lock of another owner that conflicts with ``wanted``."""
        for lock in self._records.get(inode, []):
            if (
                lock.owner is not wanted.owner
                and lock.overlaps(wanted)
                and (lock.exclusive or wanted.exclusive)
            ):
                return lock
        return None

    def forget_description(self, inode: int, owner: object) -> None:
        """Drop the locks of an open file description, whose last descriptor was closed."""
        if inode in self._whole:
            self._whole[inode] = [lock for lock in self._whole[inode] if lock[0] is not owner]
        self.forget_records(inode, owner)

    def forget_records(self, inode: int, owner: object) -> None:
        """Drop the record locks of an owner: a process closed some descriptor of the file."""
        if inode in self._records:
            kept = [lock for lock in self._records[inode] if lock.owner is not owner]
            self._records[inode] = kept


def _conflict(call: str, *, waiting: bool) -> BaseException:
    if waiting:
        return UnsupportedOperation(
            f"{call}: another owner holds the lock, and waiting for it would never end "
            "on the simulated disk; use LOCK_NB"
        )
    return os_error(errno.EWOULDBLOCK)
