"""Misplaced bytes: reads show them after misdirected writes; the disk itself has other bytes.

The place of a misdirected write shows the bytes of before, and another sector of the same file
shows the data. This lasts, over crashes too, until the program truncates the file below it, or
writes there again and that is durable. It also lasts when the rule is switched off: no disk puts
the data right by itself, and a program may have read it and gone on from there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final, NamedTuple

from sim.disk.cache.operation import Operation, Resize, Sync, Write
from sim.disk.disk import Disk

_EVERYTHING: Final = sys.maxsize


class Patch(NamedTuple):
    """Bytes that a read of the file returns from ``start`` on, instead of the disk's."""

    start: int
    data: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.data)

    def without(self, start: int, end: int) -> Iterator[Patch]:
        """Yield the remaining parts of the patch without the range ``start`` to ``end``."""
        if self.start < start:
            yield Patch(self.start, self.data[: start - self.start])
        if end < self.end:
            kept = max(end, self.start)
            yield Patch(kept, self.data[kept - self.start :])


class MisplacedBytes:
    """The patches of the files of one disk, by inode; later patches hide earlier ones."""

    __slots__ = ("_patches", "_replaced")

    def __init__(self) -> None:
        self._patches: dict[int, list[Patch]] = {}
        # Patches that an unsynced write has replaced, each with the bytes in its place.
        self._replaced: dict[int, list[tuple[Patch, bytes]]] = {}

    def __bool__(self) -> bool:
        """Return whether a read may show a patch, now or after a power cut."""
        return bool(self._patches or self._replaced)

    def boot(self, disk: Disk) -> None:
        """Begin a lifetime; patches return whose replacement the disk has lost."""
        for inode, replaced in self._replaced.items():
            found = disk.cache.get(inode)
            returning = [
                patch
                for patch, data in replaced
                if found is not None
                and found.read(patch.start, len(data)).ljust(len(data), b"\0") != data
            ]
            if returning:
                self._patches[inode] = [*returning, *self._patches.get(inode, ())]
        self._replaced.clear()

    def add(self, inode: int, patch: Patch) -> None:
        """Show a patch over the content of a file."""
        self._patches.setdefault(inode, []).append(patch)

    def shown(self, inode: int, offset: int, data: bytes) -> bytes:
        """Return what a read shows that finds ``data`` at ``offset``."""
        if inode not in self._patches:
            return data
        patched = bytearray(data)
        end = offset + len(data)
        for patch in self._patches[inode]:
            start, stop = max(offset, patch.start), min(end, patch.end)
            if start < stop:
                piece = patch.data[start - patch.start : stop - patch.start]
                patched[start - offset : stop - offset] = piece
        return bytes(patched)

    def follow(self, operation: Operation) -> None:
        """Remove the patches that a write or a truncation has replaced."""
        match operation:
            case Write(inode=inode, offset=offset, data=data):
                self._replace(inode, offset, data)
            case Resize(inode=inode, size=size, size_before=before) if size < before:
                self._replace(inode, size, b"")
            case Sync(inode=0):
                self._replaced.clear()
            case Sync(inode=inode, end=0):
                self._replaced.pop(inode, None)

    def _replace(self, inode: int, start: int, data: bytes) -> None:
        """Remove what patches show in the place of ``data``, or from ``start`` on without data."""
        end, left = start + len(data) if data else _EVERYTHING, list[Patch]()
        for patch in self._patches.pop(inode, ()):
            left += patch.without(start, end)
            first, last = max(start, patch.start), min(end, patch.end)
            if data and first < last:
                hidden = Patch(first, patch.data[first - patch.start : last - patch.start])
                new = data[first - start : last - start]
                self._replaced.setdefault(inode, []).append((hidden, new))
        if not data and inode in self._replaced:
            cut = self._replaced[inode]
            self._replaced[inode] = [each for each in cut if each[0].end <= start]
        if left:
            self._patches[inode] = left
