"""The journal of one lifetime: every operation that happened, in order.

A running program enters thousands of operations before somebody reads one, and a named
tuple costs five times what a bare one does, for the garbage collector for ever. So the
hottest calls enter a bare tuple, a number for its kind and then the fields, which becomes a
record when the journal is read.
"""

from __future__ import annotations

from typing import Any, Final

from sim.disk.inode import Inode
from sim.disk.operation import Create, Operation, Rename, Sync, Write

CREATE: Final = 0
WRITE: Final = 1
RENAME: Final = 2
SYNC: Final = 3
_KINDS: Final = (Create, Write, Rename, Sync)


class Journal:
    """What ``Disk`` writes and everybody else reads. ``entries`` is for the disk alone."""

    __slots__ = ("_recorded", "entries")

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._recorded = 0

    def records(self) -> list[Operation]:
        """Return every operation; operation ``n`` is at index ``n - 1``."""
        entries = self.entries
        for index in range(self._recorded, len(entries)):
            entries[index] = recorded(entries[index])
        self._recorded = len(entries)
        return entries


def recorded(entry: Any) -> Operation:
    """Return the record of an entry, which may be one already.

    A ``Create`` is entered as its path, the arguments of ``Inode``, the directory, the name.
    """
    if type(entry) is not tuple:
        operation: Operation = entry
        return operation
    kind, path, *fields = entry
    if kind == CREATE:
        number, mode, owner, now_ns, target, directory, name = fields
        return Create(path, Inode(number, mode, now_ns, owner, target), directory, name)
    return _KINDS[kind](path, *fields)
