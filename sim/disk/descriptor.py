"""Descriptors, and the open file descriptions behind them (open(2), "Open file descriptions").

``dup`` makes two descriptors share one description, and with it the offset, the flags and
the ``flock``.

Numbers start far above any that a real kernel hands out, so that one which strays into a
real system call fails there with EBADF and touches nothing.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from sim.disk.open_flags import OpenFlags

FIRST_DESCRIPTOR: Final = 1 << 29


class OpenFile:
    """An open file description.

    ``number`` is the inode's, ``path`` is what was given to ``open``, ``offset`` is in
    bytes. ``sync_errors`` is how many failed syncs of this inode its owner knows of.
    """

    __slots__ = ("flags", "is_directory", "number", "offset", "path", "references", "sync_errors")

    def __init__(
        self, number: int, path: str, flags: OpenFlags, is_directory: bool, sync_errors: int
    ) -> None:
        self.number = number
        self.path = path
        self.flags = flags
        self.is_directory = is_directory
        self.sync_errors = sync_errors
        self.offset = 0
        self.references = 1


class DescriptorTable:
    """The descriptors of one process; a new one is the lowest that is free.

    All from ``_next`` on are free, and below it those in the heap ``_free``.
    """

    __slots__ = ("_free", "_next", "files", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.files: dict[int, OpenFile] = {}
        self._free: list[int] = []
        self._next = FIRST_DESCRIPTOR

    @property
    def is_full(self) -> bool:
        return len(self.files) >= self.limit

    def add(self, file: OpenFile) -> int:
        """Give a new description its descriptor, and return it."""
        if self._free:
            descriptor = heappop(self._free)
        else:
            descriptor = self._next
            self._next = descriptor + 1
        self.files[descriptor] = file
        return descriptor

    def add_twin(self, file: OpenFile) -> int:
        """Give a description one more descriptor, and return it."""
        file.references += 1
        return self.add(file)

    def remove(self, descriptor: int) -> OpenFile | None:
        """Close a descriptor, and return its description; None if there is none."""
        file = self.files.pop(descriptor, None)
        if file is not None:
            file.references -= 1
            if descriptor == self._next - 1:
                self._next = descriptor
            else:
                heappush(self._free, descriptor)
        return file
