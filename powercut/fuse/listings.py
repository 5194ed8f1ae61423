"""Directories that are being read: each as it was when reading began.

Names that come and go meanwhile change no position, so ``rm -r`` misses none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from powercut.fuse.messages import OPEN_OUT, READ_IN, Request, directory_record
from sim.disk.cache.inode import Inode


class Listings:
    """Answers the requests on open directories. ``inode`` returns the inode of a node."""

    def __init__(self, inode: Callable[[int], Inode]) -> None:
        self._inode = inode
        self._records: dict[int, list[bytes]] = {}
        self._last = 0

    def open(self, request: Request) -> bytes:
        self._inode(request.node)
        self._last += 1
        return OPEN_OUT.pack(self._last, 0, 0)

    def read(self, request: Request) -> bytes:
        number, start, size = READ_IN.unpack_from(request.body)
        if not start:
            self._records[number] = list(self._of(self._inode(request.node)))
        found = bytearray()
        for record in self._records[number][start:]:
            if len(found) + len(record) > size:
                break
            found += record
        return bytes(found)

    def close(self, request: Request) -> bytes:
        number, *_ = READ_IN.unpack_from(request.body)
        self._records.pop(number, None)
        return b""

    def _of(self, directory: Inode) -> Iterator[bytes]:
        yield directory_record(b".", directory.number, directory.mode, 1)
        yield directory_record(b"..", directory.parent, directory.mode, 2)
        for position, (name, number) in enumerate(sorted(directory.entries.items()), 3):
            mode = self._inode(number).mode
            yield directory_record(os.fsencode(name), number, mode, position)
