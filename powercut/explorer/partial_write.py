"""Partial writes: the disks that the kills of one long write leave, between two of its pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from powercut.explorer.page_cache import PageCache
from sim.disk.cache.operation import Write
from sim.disk.crash.unsynced import Unsynced


class PartialWrite:
    """The first part of a write, which grows; all its parts together cost as much as the write.

    ``unsynced`` and ``cache`` have read the operations before ``write``, which is operation
    ``number``, and are not changed.
    """

    def __init__(self, write: Write, number: int, unsynced: Unsynced, cache: PageCache) -> None:
        self.cache = cache.copy()
        self._write = write
        self._number = number
        self._before = unsynced
        self._unsynced: Unsynced | None = None
        self._read = self._cached = 0

    def prefixes(self, kept: Sequence[int]) -> Iterator[int]:
        """Grow to each of these prefixes (``page_prefixes``), which ascend, and yield it."""
        for size in kept:
            self.cache.advance(self._between(self._cached, size), self._before)
            self._cached = size
            yield size

    def _between(self, start: int, end: int) -> Write:
        """Return the bytes from ``start`` to ``end`` of the write, as a write."""
        write = self._write
        return write._replace(offset=write.offset + start, data=write.data[start:end])

    @property
    def unsynced(self) -> Unsynced:
        """The unsynced pieces with those of the present prefix.

        A model that keeps whole calls may have one piece for it. With any other, a page that is
        added leaves the pieces before it as they are.
        """
        is_cut = self._before.model.cuts_pages
        if self._unsynced is None or (self._read < self._cached and not is_cut):
            self._unsynced, self._read = self._before.copy(), 0
        if self._read < self._cached:
            self._unsynced.advance(self._between(self._read, self._cached), self._number)
            self._read = self._cached
        return self._unsynced
