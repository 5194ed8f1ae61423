"""Silent damage: rotten sectors, and writes that the drive puts in the wrong place.

Both are laid over the bytes that a read returns; the disk keeps the pristine data. A rotten sector
reads damaged in the same way every time: one bit in every thirty-second byte is inverted, chosen
by the inode and the sector number. Switching the rule off removes the damage.
"""

from __future__ import annotations

from typing import Final

from xxhash import xxh3_64_intdigest

from faults.call_kind import CallKind
from faults.fault_plan import FaultRule, Misdirect, Rot
from faults.injectors.misplaced_bytes import MisplacedBytes, Patch
from faults.injectors.rule_injector import RuleInjector
from sim.disk.cache.inode import SECTOR_BYTES
from sim.disk.cache.operation import Operation, Write
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


class MisdirectInjector(RuleInjector):
    """Sends writes to the wrong sector; ``misplaced`` shows them to the reads."""

    __slots__ = ("_disk", "_misplaced", "_replaced", "_start")

    def __init__(self, rule: FaultRule, effect: Misdirect, misplaced: MisplacedBytes) -> None:
        super().__init__(rule)
        self._start = effect.sector * SECTOR_BYTES
        self._misplaced = misplaced
        self._disk: Disk | None = None
        self._replaced: bytes | None = None

    def boot(self, disk: Disk) -> None:
        self._disk = disk

    def before(self, operation: Operation, number: int) -> Operation:
        """Remember the bytes that a misdirected write would have replaced."""
        assert self._disk is not None, "a rule is installed before its first operation"
        self._replaced = None
        if self.strikes_operation(operation, number) and isinstance(operation, Write):
            inode, offset, length = operation.inode, operation.offset, len(operation.data)
            replaced = self._disk.inode(inode).read(offset, length).ljust(length, b"\0")
            self._replaced = self._misplaced.shown(inode, offset, replaced)
        return operation

    def after(self, operation: Operation, _number: int) -> None:
        """Put the bytes of a misdirected write in the wrong place."""
        if self._replaced is not None and isinstance(operation, Write):
            self.fired += 1
            # A later rule may have shortened the write.
            replaced = self._replaced[: len(operation.data)]
            self._misplaced.add(operation.inode, Patch(operation.offset, replaced))
            self._misplaced.add(operation.inode, Patch(self._start, operation.data))
