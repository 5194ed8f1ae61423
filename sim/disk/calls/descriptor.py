"""Descriptors, and the open file descriptions behind them (open(2), "Open file descriptions").

``dup`` makes two descriptors share one description, and with it the offset, the flags and
the ``flock``.

Numbers start far above any that a real kernel hands out, so that one which strays into a
real system call fails there with EBADF and touches nothing.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Final

from sim.disk.calls.open_flags import OpenFlags

FIRST_DESCRIPTOR: Final = 1 << 29


class OpenFile:
    """An open file description; ``DescriptorTable.open`` makes it.

    ``number`` is the inode's, ``path`` is what was given to ``open``, ``offset`` is in
    bytes. ``sync_errors`` is how many failed syncs of this inode its owner knows of.
    """

    __slots__ = ("flags", "is_directory", "number", "offset", "path", "sync_errors")

    # Without a constructor: its call would cost as much as everything else that ``open`` does.
    flags: OpenFlags
    is_directory: bool
    number: int
    offset: int
    path: str
    sync_errors: int


class DescriptorTable:
    """The descriptors of one process; a new one is the lowest that is free.

    ``free`` is a heap of those that were given back: with ``files`` it has no gaps.
    """

    __slots__ = ("files", "free", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.files: dict[int, OpenFile] = {}
        self.free: list[int] = []

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
        free, files = self.free, self.files
        descriptor = heappop(free) if free else FIRST_DESCRIPTOR + len(files)
        files[descriptor] = file
        return descriptor

    def add_twin(self, file: OpenFile) -> int:
        """Give a description one more descriptor, and return it."""
        free, files = self.free, self.files
        descriptor = heappop(free) if free else FIRST_DESCRIPTOR + len(files)
        files[descriptor] = file
        return descriptor

    def remove(self, descriptor: int) -> OpenFile | None:
        """Close a descriptor, and return its description; None if there is none."""
        file = self.files.pop(descriptor, None)
        if file is not None:
            heappush(self.free, descriptor)
        return file
