"""Bit rot: a sector that reads damaged, always in the same way.

The damage is derived from the identity of the sector (inode and sector number): one bit in
every thirty-second byte of it is turned. It is laid over what is read; the disk keeps the
pristine data, so that the rot goes when its rule is switched off.
"""

from __future__ import annotations

from typing import Final

from xxhash import xxh3_64_intdigest

from faults.fault_effect import Rot
from faults.fault_rule import Calls
from faults.injectors.passing import Injector, Passing
from faults.injectors.trigger import Trigger
from sim.disk.cache.inode import SECTOR_BYTES

_STRIDE_BYTES: Final = 32


class RotInjector(Passing):
    """Damages one sector of every matching file."""

    __slots__ = ("_sector", "_trigger")

    def __init__(self, trigger: Trigger, effect: Rot, behind: Injector) -> None:
        super().__init__(behind)
        self._trigger = trigger
        self._sector = effect.sector

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        """Lay the damage over what is read of the sector."""
        if self._trigger.strikes(Calls.READ, path):
            data = self._damaged(inode, offset, data)
        return self.behind.reading(path, inode, offset, data)

    def _damaged(self, inode: int, offset: int, data: bytes) -> bytes:
        identity = xxh3_64_intdigest(b"%d.%d" % (inode, self._sector))
        start = self._sector * SECTOR_BYTES
        bit = 1 << (identity >> 8) % 8
        end = min(start + SECTOR_BYTES, offset + len(data))
        rotten = range(start + identity % _STRIDE_BYTES, end, _STRIDE_BYTES)
        hit = [place - offset for place in rotten if place >= offset]
        if not hit:
            return data
        self._trigger.fired += 1
        damaged = bytearray(data)
        for place in hit:
            damaged[place] ^= bit
        return bytes(damaged)
