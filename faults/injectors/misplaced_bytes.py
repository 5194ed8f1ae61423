"""Misplaced bytes: reads show them after misdirected writes; the disk itself has other bytes.

The place of a misdirected write shows the bytes of before, and another sector of the same file
shows the data. This lasts, over crashes too, until the program writes there again or truncates
the file below it. It also lasts when the rule is switched off: no disk puts the data right by
itself, and a program may have read it and gone on from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sim.disk.cache.operation import Operation, Resize, Write


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

    __slots__ = ("_patches",)

    def __init__(self) -> None:
        self._patches: dict[int, list[Patch]] = {}

    def __bool__(self) -> bool:
        """Return whether a read may show a patch."""
        return bool(self._patches)

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
                self._remove(inode, offset, offset + len(data))
            case Resize(inode=inode, size=size, size_before=before):
                self._remove(inode, size, max(size, before))

    def _remove(self, inode: int, start: int, end: int) -> None:
        patches = self._patches.pop(inode, ())
        left = [piece for patch in patches for piece in patch.without(start, end)]
        if left:
            self._patches[inode] = left
