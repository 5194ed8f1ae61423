"""Misdirected writes: the drive reports success, and the data is in the wrong place.

The place it was meant for shows what was there before, and another sector of the same file
shows the data. Both are patches laid over what is read; the disk keeps the pristine data,
so that the fault can be switched off. A patch lasts, over crashes too, until the program
writes there again or cuts the file below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from faults.fault_effect import Misdirect
from faults.injectors.passing import Injector, Passing
from faults.injectors.trigger import Trigger
from sim.disk.cache.inode import SECTOR_BYTES
from sim.disk.cache.operation import Operation, Resize, Write
from sim.disk.disk import Disk


class Patch(NamedTuple):
    """Bytes that a read sees in a file from ``start`` on, instead of what is there."""

    start: int
    data: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.data)

    def without(self, start: int, end: int) -> Iterator[Patch]:
        """Yield what is left of the patch when ``start`` to ``end`` is taken out of it."""
        if self.start < start:
            yield Patch(self.start, self.data[: start - self.start])
        if end < self.end:
            kept = max(end, self.start)
            yield Patch(kept, self.data[kept - self.start :])


class MisdirectInjector(Passing):
    """Sends writes to the wrong sector."""

    __slots__ = ("_disk", "_patches", "_sector", "_stray", "_trigger")

    def __init__(self, trigger: Trigger, effect: Misdirect, behind: Injector) -> None:
        super().__init__(behind)
        self._trigger = trigger
        self._sector = effect.sector
        self._disk: Disk | None = None
        self._stray: bytes | None = None
        self._patches: dict[int, list[Patch]] = {}

    def boot(self, disk: Disk) -> None:
        """Look at this disk from now on."""
        self._disk = disk
        self.behind.boot(disk)

    def before(self, operation: Operation, number: int) -> Operation:
        """Remember what a write that goes astray would have replaced."""
        struck = self._trigger.strikes_operation(operation, number)
        operation = self.behind.before(operation, number)
        self._stray = None
        if struck and isinstance(operation, Write) and self._disk is not None:
            inode = self._disk.inode(operation.inode)
            length = len(operation.data)
            self._stray = inode.read(operation.offset, length).ljust(length, b"\0")
        return operation

    def after(self, operation: Operation, number: int) -> None:
        """Let a write heal what was patched at its place, and go astray if it shall."""
        match operation:
            case Write(_, inode, offset, data, _):
                self._take_out(inode, offset, offset + len(data))
                if self._stray is not None:
                    self._trigger.fired += 1
                    patches = self._patches.setdefault(inode, [])
                    patches += Patch(offset, self._stray), Patch(self._start, data)
            case Resize(_, inode, size, before):
                self._take_out(inode, size, max(size, before))
        self.behind.after(operation, number)

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        """Lay the patches over what is read."""
        if inode in self._patches and self._trigger.on:
            data = self._patched(inode, offset, data)
        return self.behind.reading(path, inode, offset, data)

    @property
    def _start(self) -> int:
        return self._sector * SECTOR_BYTES

    def _take_out(self, inode: int, start: int, end: int) -> None:
        patches = self._patches.get(inode, ())
        left = [piece for patch in patches for piece in patch.without(start, end)]
        if left:
            self._patches[inode] = left
        else:
            self._patches.pop(inode, None)

    def _patched(self, inode: int, offset: int, data: bytes) -> bytes:
        seen = bytearray(data)
        end = offset + len(data)
        for patch in self._patches[inode]:
            start, stop = max(offset, patch.start), min(end, patch.end)
            if start < stop:
                piece = patch.data[start - patch.start : stop - patch.start]
                seen[start - offset : stop - offset] = piece
        return bytes(seen)
