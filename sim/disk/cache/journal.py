"""The journal of one lifetime: every operation that happened, in order.

A running program enters thousands of operations before somebody reads one. While nothing
watches, the hottest calls only note the bare fields of what they did, a number for the kind
first and no container around them; the notes become records when the journal is read. A
named tuple for each would cost five times as much, and the garbage collector more again.
"""

from __future__ import annotations

from typing import Any, Final

from sim.disk.cache.inode import Inode
from sim.disk.cache.operation import Create, Operation, Rename, Resize, Sync, Write

CREATE: Final = 0
WRITE: Final = 1
RENAME: Final = 2
SYNC: Final = 3
RESIZE: Final = 4
ENTERED: Final = 5
"""What is noted of all other calls: this, and the operation itself."""
_KINDS: Final = (Create, Write, Rename, Sync, Resize)
# A birth is noted as its path, the arguments of ``Inode.new``, the directory and the name.
_LENGTHS: Final = (9, *(1 + len(kind._fields) for kind in _KINDS[1:]), 2)


class Journal:
    """What ``Disk`` writes and everybody else reads.

    ``notes`` is for the disk alone: it extends it by what ``recorded`` takes.
    """

    __slots__ = ("_records", "notes")

    def __init__(self) -> None:
        self.notes: list[Any] = []
        self._records: list[Operation] = []

    def records(self) -> list[Operation]:
        """Return every operation; operation ``n`` is at index ``n - 1``."""
        notes = self.notes
        if notes:
            start = 0
            while start < len(notes):
                end = start + _LENGTHS[notes[start]]
                self._records.append(recorded(tuple(notes[start:end])))
                start = end
            notes.clear()
        return self._records


def recorded(entry: Any) -> Operation:
    """Return the record that a note stands for; an operation stands for itself."""
    if type(entry) is not tuple:
        operation: Operation = entry
        return operation
    kind, path, *fields = entry
    if kind == ENTERED:
        entered: Operation = path
        return entered
    if kind == CREATE:
        number, mode, owner, now_ns, link_text, directory, name = fields
        return Create(path, Inode.new(number, mode, now_ns, owner, link_text), directory, name)
    return _KINDS[kind](path, *fields)
