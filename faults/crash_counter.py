"""The crash counter: ends a lifetime in one phase of one mutating operation.

The page cache after a crash in each phase contains:

==========  =============================  =============  ================  ===============
phase       write, killed                  write, power   barrier           everything else
==========  =============================  =============  ================  ===============
``before``  nothing                        nothing        nothing           nothing
``during``  a prefix that ends at a page   all of it      nothing is        all of it
            boundary                                      made durable
``after``   all of it                      all of it      durable           all of it
==========  =============================  =============  ================  ===============

A write is copied into the page cache page by page, and Linux checks for a fatal signal
between two pages (``generic_perform_write``): so a write within one page is all or nothing
under a kill. So is a direct write, which is copied nowhere, unless the persistence
model has ``torn_direct_writes``. Under a power cut the whole write is unsynced and the survivor
set cuts it; likewise, the survivor set decides which part of a barrier's operations became durable.
Metadata operations are atomic in the page cache, so ``during`` is the same as ``after`` for
them; again, the survivor set decides which part of one survives a power cut.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from faults.crash_point import CrashKind, CrashPoint, Phase
from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.cache.operation import DropPages, FailedSync, Operation, Sync, Write
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import PersistenceModel
from sim.disk.disk import Disk
from sim.errors import HarnessError, SimulatedCrash


class Hit(NamedTuple):
    """The operation, its number and the phase in which a crash happened."""

    operation: Operation
    number: int
    phase: Phase


class CrashCounter:
    """Counts down the mutating operations of ``disk``, and crashes when none remains.

    Make it the disk's interposer; it forwards each call to the previous interposer.
    ``remaining`` is decremented by every write, fsync, rename and other mutating operation.
    The crash happens at the operation that brings it to zero, before, during or after it.
    An operation that an injector refuses did not happen and is not counted; a crash
    ``before`` it comes first. ``kept`` is for a kill ``during`` a write: the number of its
    bytes that are copied, rounded down to a page boundary; 0 copies all of them, as a power
    cut requires.

    ``hit`` is the operation of the crash, None until the crash.

    Raises ``HarnessError`` unless ``remaining`` is at least 1.
    """

    __slots__ = ("_behind", "_disk", "hit", "kept", "phase", "remaining")

    def __init__(self, disk: Disk, remaining: int, phase: Phase, kept: int = 0) -> None:
        if remaining < 1:
            raise HarnessError(f"a crash needs an operation to happen at: remaining={remaining}")
        self._disk = disk
        self._behind = disk.interposer
        self.remaining = remaining
        self.phase = phase
        self.kept = kept
        self.hit: Hit | None = None

    def before(self, operation: Operation, number: int) -> Operation:
        """Crash if nothing of the operation is to happen."""
        assert self.remaining > 0, "the disk is off after the crash"
        is_last = self.remaining == 1
        if is_last and self.phase is Phase.BEFORE:
            self._crash(operation, number)
        if self._behind is not None:
            operation = self._behind.before(operation, number)
        if is_last and self.phase is Phase.DURING:
            return self._part_of(operation, number)
        return operation

    def after(self, operation: Operation, number: int) -> None:
        """Count the operation; crash if all or the first part of it was to happen."""
        if self._behind is not None:
            self._behind.after(operation, number)
        if self.remaining == 1:
            self._crash(operation, number)
        self.remaining -= 1

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        """Forward a read, which is no crash point because it changes nothing."""
        if self._behind is not None:
            return self._behind.reading(path, inode, offset, data)
        return data

    def _part_of(self, operation: Operation, number: int) -> Operation:
        if isinstance(operation, Sync | FailedSync | DropPages):
            self._crash(operation, number)
        if isinstance(operation, Write) and self.kept:
            taken = page_prefix(operation, self.kept)
            if not taken:
                self._crash(operation, number)
            return operation._replace(data=operation.data[:taken])
        return operation

    def _crash(self, operation: Operation, number: int) -> NoReturn:
        self.remaining = 0
        self.hit = Hit(operation, number, self.phase)
        self._disk.power_off()
        name = type(operation).__name__
        raise SimulatedCrash(f"{self.phase} operation {number}, {name} {operation.path}")


def page_prefix(write: Write, kept: int) -> int:
    """Return how many bytes of ``write`` remain if a kill comes after ``kept`` bytes."""
    if kept >= len(write.data):
        return len(write.data)
    return max(0, kept - (write.offset + kept) % BLOCK_BYTES)


def page_prefixes(write: Write, model: PersistenceModel) -> range:
    """Return every ``kept`` with which a part of ``write`` remains, but not all of it."""
    if write.direct and not model.torn_direct_writes:
        return range(0)
    first = BLOCK_BYTES - write.offset % BLOCK_BYTES
    return range(first, len(write.data), BLOCK_BYTES)


def crash_image(disk: Disk, point: CrashPoint) -> Image:
    """Return the disk of the next boot after ``disk`` crashed at ``point``.

    Raises ``HarnessError`` if the disk's persistence model does not allow the survivors.
    """
    if point.kind is CrashKind.KILL:
        return disk.snapshot()
    return disk.power_cut(point.survivors)
