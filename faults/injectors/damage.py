"""Silent damage: rotten sectors, and writes that the drive puts in the wrong place.

Both are laid over the bytes that a read returns; the disk keeps the pristine data, so that
switching the rule off removes the damage.

A rotten sector reads damaged in the same way every time: one bit in every thirty-second byte
is inverted, chosen by the inode and the sector number. After a misdirected write, its own
place shows the bytes of before, and another sector of the same file shows the data. This
lasts, over crashes too, until the program writes there again or truncates the file below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from xxhash import xxh3_64_intdigest

from faults.call_kind import CallKind
from faults.fault_plan import FaultRule, Misdirect, Rot
from faults.injectors.rule_injector import RuleInjector
from sim.disk.cache.inode import SECTOR_BYTES
from sim.disk.cache.operation import Operation, Resize, Write
from sim.disk.disk import Disk

_STRIDE_BYTES: Final = 32


class RotInjector(RuleInjector):
    """Damages one sector of every matching file."""

    __slots__ = ("_sector",)

    def __init__(self, rule: FaultRule, effect: Rot) -> None:
        super().__init__(rule)
        self._sector = effect.sector

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        return self._damaged(inode, offset, data) if self.strikes(CallKind.READ, path) else data

    def _damaged(self, inode: int, offset: int, data: bytes) -> bytes:
        identity = xxh3_64_intdigest(b"%d.%d" % (inode, self._sector))
        start = self._sector * SECTOR_BYTES
        end = min(start + SECTOR_BYTES, offset + len(data))
        rotten = range(start + identity % _STRIDE_BYTES, end, _STRIDE_BYTES)
        positions = [position - offset for position in rotten if position >= offset]
        if not positions:
            return data
        self.fired += 1
        damaged = bytearray(data)
        for position in positions:
            damaged[position] ^= 1 << (identity >> 8) % 8
        return bytes(damaged)


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


class MisdirectInjector(RuleInjector):
    """Sends writes to the wrong sector."""

    __slots__ = ("_disk", "_patches", "_replaced", "_start")

    def __init__(self, rule: FaultRule, effect: Misdirect) -> None:
        super().__init__(rule)
        self._start = effect.sector * SECTOR_BYTES
        self._disk: Disk | None = None
        self._replaced: bytes | None = None
        self._patches: dict[int, list[Patch]] = {}

    def boot(self, disk: Disk) -> None:
        self._disk = disk

    def before(self, operation: Operation, number: int) -> Operation:
        """Remember the bytes that a misdirected write would have replaced."""
        assert self._disk is not None, "a rule is installed before its first operation"
        self._replaced = None
        if self.strikes_operation(operation, number) and isinstance(operation, Write):
            length = len(operation.data)
            inode = self._disk.inode(operation.inode)
            self._replaced = inode.read(operation.offset, length).ljust(length, b"\0")
        return operation

    def after(self, operation: Operation, _number: int) -> None:
        """Remove the patches that the operation overwrote, and add those of a misdirected one."""
        match operation:
            case Write(inode=inode, offset=offset, data=data):
                self._remove(inode, offset, offset + len(data))
                if self._replaced is not None:
                    self.fired += 1
                    # A later rule may have shortened the write.
                    replaced = self._replaced[: len(data)]
                    patches = self._patches.setdefault(inode, [])
                    patches += Patch(offset, replaced), Patch(self._start, data)
            case Resize(inode=inode, size=size, size_before=before):
                self._remove(inode, size, max(size, before))

    def reading(self, _path: str, inode: int, offset: int, data: bytes) -> bytes:
        return self._patched(inode, offset, data) if self.on and inode in self._patches else data

    def _remove(self, inode: int, start: int, end: int) -> None:
        patches = self._patches.pop(inode, ())
        left = [piece for patch in patches for piece in patch.without(start, end)]
        if left:
            self._patches[inode] = left

    def _patched(self, inode: int, offset: int, data: bytes) -> bytes:
        patched = bytearray(data)
        end = offset + len(data)
        for patch in self._patches[inode]:
            start, stop = max(offset, patch.start), min(end, patch.end)
            if start < stop:
                piece = patch.data[start - patch.start : stop - patch.start]
                patched[start - offset : stop - offset] = piece
        return bytes(patched)
