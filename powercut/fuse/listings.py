"""The names of directories, in an order that does not change while they are read.

Each name has a position of its own from the first listing that shows it until it is gone, so names
that come and go meanwhile move no other one, and ``rm -r`` misses none. A listing continues behind
a position. So the kernel need not open directories, and saves two requests for each one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from powercut.fuse.messages import READ_IN, Request, directory_record
from sim.disk.cache.inode import Inode

_DOT, _DOT_DOT = 1, 2


class Listings:
    """Answers the requests for names. ``inode`` returns the inode of a node."""

    def __init__(self, inode: Callable[[int], Inode]) -> None:
        self._inode = inode
        self._positions: dict[int, dict[str, int]] = {}
        self._last: dict[int, int] = {}

    def read(self, request: Request) -> bytes:
        """Return the names of a directory behind a position, as many as fit."""
        _, start, size = READ_IN.unpack_from(request.body)
        found = bytearray()
        for record in self._behind(self._inode(request.node), start):
            if len(found) + len(record) > size:
                break
            found += record
        return bytes(found)

    def _behind(self, directory: Inode, start: int) -> Iterator[bytes]:
        if start < _DOT:
            yield directory_record(b".", directory.number, directory.mode, _DOT)
        if start < _DOT_DOT:
            yield directory_record(b"..", directory.parent, directory.mode, _DOT_DOT)
        for name, position in self._positions_in(directory).items():
            if position > start:
                number = directory.entries[name]
                mode = self._inode(number).mode
                yield directory_record(os.fsencode(name), number, mode, position)

    def _positions_in(self, directory: Inode) -> dict[str, int]:
        """Return the position of each name, in their order."""
        number, entries = directory.number, directory.entries
        last = self._last.get(number, _DOT_DOT)
        old = self._positions.get(number, {})
        positions = {name: position for name, position in old.items() if name in entries}
        for name in sorted(name for name in entries if name not in positions):
            last += 1
            positions[name] = last
        self._positions[number], self._last[number] = positions, last
        return positions
