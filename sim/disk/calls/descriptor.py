"""Descriptors, and the open file descriptions behind them (open(2), "Open file descriptions").

``dup`` makes two descriptors share one description, and with it the offset, the flags and
the ``flock``.

Numbers start far above any that a real kernel hands out. A simulated descriptor that reaches a
real system call by mistake fails there with EBADF and has no effect.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final

from sim.disk.calls.open_flags import OpenFlags

FIRST_DESCRIPTOR: Final = 1 << 29


class OpenFile:
    """An open file description; ``open`` makes it.

    ``number`` is the inode's, ``path`` is the path given to ``open``, ``offset`` is in bytes.
    ``sync_errors`` counts the failed syncs of this inode that this description has reported.
    """

    __slots__ = ("flags", "is_directory", "number", "offset", "path", "sync_errors")

    # Without a constructor, whose call would cost as much as the rest of ``open``.
    flags: OpenFlags
    is_directory: bool
    number: int
    offset: int
    path: str
    sync_errors: int


class DescriptorTable:
    """The descriptors of one process: ``files`` by number, of which ``inheritable`` are some.

    A new descriptor is the lowest free one from ``first`` on; at most ``limit`` are open at a
    time.
    """

    __slots__ = ("_free", "_next", "files", "first", "inheritable", "limit")

    def __init__(self, limit: int, first: int = FIRST_DESCRIPTOR) -> None:
        self.limit = limit
        self.first = first
        self.files: dict[int, OpenFile] = {}
        self.inheritable: set[int] = set()
        # Every number below ``_next`` is open or in the heap ``_free``.
        self._free: list[int] = []
        self._next = first

    def renumber(self, first: int) -> None:
        """Start at another number, which is possible while no descriptor is open."""
        assert not self.files
        self.first = self._next = first
        self._free.clear()

    def add(self, file: OpenFile) -> int:
        """Return a new descriptor of an open file description."""
        if self._free:
            descriptor = heappop(self._free)
        else:
            descriptor = self._next
            self._next += 1
        self.files[descriptor] = file
        return descriptor

    def add_at(self, descriptor: int, file: OpenFile) -> None:
        """Make ``descriptor``, which must be free, a descriptor of ``file``."""
        assert self.first <= descriptor < self.first + self.limit, descriptor
        assert descriptor not in self.files, descriptor
        self._free += range(self._next, descriptor + 1)
        self._free.remove(descriptor)
        heapify(self._free)
        self._next = max(self._next, descriptor + 1)
        self.files[descriptor] = file

    def add_from(self, lowest: int, file: OpenFile) -> int | None:
        """Return a new descriptor from ``lowest`` on, or None if no such number is free."""
        numbers = range(max(lowest, self.first), self.first + self.limit)
        descriptor = next((number for number in numbers if number not in self.files), None)
        if descriptor is not None:
            self.add_at(descriptor, file)
        return descriptor

    def remove(self, descriptor: int) -> OpenFile | None:
        """Close a descriptor, and return its description; None if there is none."""
        file = self.files.pop(descriptor, None)
        if file is not None:
            heappush(self._free, descriptor)
            self.inheritable.discard(descriptor)
        return file
