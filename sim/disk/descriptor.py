"""Descriptors, and the open file descriptions behind them (open(2), "Open file descriptions").

``dup`` makes two descriptors share one description, and with it the offset, the flags and
the ``flock``.

Numbers start far above any that a real kernel hands out, so that one which strays into a
real system call fails there with EBADF and touches nothing.
"""

from __future__ import annotations

from bisect import insort
from operator import neg
from typing import Final

from sim.disk.open_flags import OpenFlags

FIRST_DESCRIPTOR: Final = 1 << 29


class OpenFile:
    """An open file description; ``DescriptorTable.open`` makes it.

    ``number`` is the inode's, ``path`` is what was given to ``open``, ``offset`` is in
    bytes. ``sync_errors`` is how many failed syncs of this inode its owner knows of.
    """

    __slots__ = ("flags", "is_directory", "number", "offset", "path", "references", "sync_errors")

    # Without a constructor: its call would cost as much as everything else that ``open`` does.
    flags: OpenFlags
    is_directory: bool
    number: int
    offset: int
    path: str
    references: int
    sync_errors: int


class DescriptorTable:
    """The descriptors of one process; a new one is the lowest that is free.

    ``_free`` is a stack of the free ones, the lowest on top; all above the one at its bottom
    are free, too.
    """

    __slots__ = ("_free", "files", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.files: dict[int, OpenFile] = {}
        self._free = [FIRST_DESCRIPTOR]

    @property
    def is_full(self) -> bool:
        return len(self.files) >= self.limit

    def open(
        self, number: int, path: str, flags: OpenFlags, is_directory: bool, sync_errors: int, /
    ) -> int:
        """Make an open file description, and return its descriptor."""
        file = OpenFile()
        file.number = number
        file.path = path
        file.flags = flags
        file.is_directory = is_directory
        file.sync_errors = sync_errors
        file.offset = 0
        file.references = 1
        free = self._free
        descriptor = free.pop()
        if not free:
            free.append(descriptor + 1)
        self.files[descriptor] = file
        return descriptor

    def add_twin(self, file: OpenFile) -> int:
        """Give a description one more descriptor, and return it."""
        file.references += 1
        descriptor = self._free.pop()
        if not self._free:
            self._free.append(descriptor + 1)
        self.files[descriptor] = file
        return descriptor

    def remove(self, descriptor: int) -> OpenFile | None:
        """Close a descriptor, and return its description; None if there is none."""
        file = self.files.pop(descriptor, None)
        if file is not None:
            file.references -= 1
            if descriptor < self._free[-1]:
                self._free.append(descriptor)
            else:
                insort(self._free, descriptor, key=neg)
        return file
