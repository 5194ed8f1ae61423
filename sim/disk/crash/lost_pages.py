"""The pages that failed barriers leave in the page cache: lost data, and unwritten blocks.

Lost data counts as written and is not; the next change of its block makes it unsynced again. Data
in an unwritten block never reaches the platter (docs/disk.md, Failed barriers).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from sim.disk.cache.inode import BLOCK_BYTES, Inode
from sim.disk.cache.operation import (
    Allocate,
    FailedSync,
    Operation,
    Resize,
    Sync,
    SyncFailure,
    Write,
)
from sim.disk.crash.barrier import pages_of
from sim.disk.crash.failed_barrier import is_durable
from sim.disk.crash.micro_operation import MicroOperation, WriteBlock
from sim.disk.crash.notes import LostData, UnwrittenBlock

_NONE: Final[frozenset[int]] = frozenset()


class LostPages:
    """The lost data and the unwritten blocks of all files; true if there are any."""

    __slots__ = ("_changed", "_lost", "_unwritten")

    def __init__(self) -> None:
        # By inode and block; the ranges of a block do not touch one another.
        self._lost: dict[int, dict[int, list[LostData]]] = {}
        self._unwritten: dict[int, set[int]] = {}
        # By inode: the unwritten blocks that were changed since the last barrier.
        self._changed: dict[int, set[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._lost or self._unwritten)

    def __iter__(self) -> Iterator[LostData | UnwrittenBlock]:
        for number in sorted(self._lost):
            for block in sorted(self._lost[number]):
                yield from self._lost[number][block]
        for number in sorted(self._unwritten):
            changed = self._changed.get(number, _NONE)
            for block in sorted(self._unwritten[number]):
                yield UnwrittenBlock(number, block, block in changed)

    @property
    def inodes(self) -> frozenset[int]:
        """The files that have lost data, or unwritten blocks."""
        return frozenset((*self._lost, *self._unwritten))

    def unwritten_blocks(self, number: int) -> AbstractSet[int]:
        """Return the unwritten blocks of an inode."""
        return self._unwritten.get(number, _NONE)

    # -- failed barriers -----------------------------------------------------------------

    def add(self, each: LostData | UnwrittenBlock) -> None:
        """Take over an unwritten block, or data of one block that is lost."""
        if isinstance(each, UnwrittenBlock):
            self._unwritten.setdefault(each.number, set()).add(each.block)
            if each.is_changed:
                self._changed.setdefault(each.number, set()).add(each.block)
            return
        assert each.offset // BLOCK_BYTES == (each.end - 1) // BLOCK_BYTES, each
        blocks = self._lost.setdefault(each.number, {})
        ranges = blocks.pop(each.offset // BLOCK_BYTES, [])
        blocks[each.offset // BLOCK_BYTES] = _joined(each, ranges)

    def lose(
        self, write: WriteBlock, policy: SyncFailure, platter: Inode | None, freed: int
    ) -> None:
        """Note data that a barrier has not written; ``platter`` is its file on the platter.

        An unsynced truncation has freed the blocks from ``freed`` on.
        """
        number, start, end = write.number, write.offset, write.offset + len(write.data)
        while start < end:
            block = start // BLOCK_BYTES
            limit = min(end, (block + 1) * BLOCK_BYTES)
            is_new = policy is not SyncFailure.BTRFS and not is_durable(block, platter, freed)
            if is_new and policy is SyncFailure.EXT4:
                self.add(UnwrittenBlock(number, block))
            else:
                data = write.data[start - write.offset : limit - write.offset]
                self.add(LostData(number, start, data, policy, is_new))
            start = limit

    def end_changes(self, sync: Sync | FailedSync) -> None:
        """Note that nothing is unsynced in the unwritten blocks of a barrier any more."""
        first, end = pages_of(sync)
        for number in [sync.inode] if sync.inode else list(self._changed):
            changed = self._changed.pop(number, set())
            if left := {block for block in changed if not first <= block * BLOCK_BYTES < end}:
                self._changed[number] = left

    # -- changes -------------------------------------------------------------------------

    def parts_of(self, operation: Operation, *, in_units: bool) -> Sequence[Operation]:
        """Return an operation with the lost data of the blocks that it changes.

        This data is written again with it, and is not lost any more. ``in_units`` is whether the
        model cuts writes into units.
        """
        match operation:
            case Write(offset=offset):
                grown = self._grown(operation, offset)
                return (*grown, *self._parts_of_write(operation, in_units=in_units))
            case Allocate(end=size) | Resize(size=size) if size > operation.size_before:
                return (*self._grown(operation, size), operation)
            case Resize():
                return (*self._truncated(operation), operation)
            case _:
                return (operation,)

    def _parts_of_write(self, write: Write, *, in_units: bool) -> Sequence[Write]:
        """Return a write with the lost data of its blocks.

        Lost data beside it makes it wider; other data of the blocks is a write of its own. The
        kernel writes page by page, so that of the last block comes after the blocks before.
        """
        parts: list[Write] = []
        behind: list[Write] = []
        start, data = write.offset, write.data
        end = start + len(data)
        self._note_changes(write.inode, range(start // BLOCK_BYTES, -(-end // BLOCK_BYTES)))
        for lost in self._take(write.inode, start // BLOCK_BYTES, (end - 1) // BLOCK_BYTES):
            if lost.end < start:
                parts.append(_again(write, lost))
                continue
            if end < lost.offset:
                behind.append(_again(write, lost))
                continue
            if lost.offset < start:
                data, start = lost.data[: start - lost.offset] + data, lost.offset
            if end < lost.end:
                data, end = data + lost.data[end - lost.offset :], lost.end
        whole, last = write._replace(offset=start, data=data), (end - 1) // BLOCK_BYTES
        if not (behind and in_units and start < last * BLOCK_BYTES):
            return (*parts, *behind, whole)
        before, in_last = whole.split(last * BLOCK_BYTES)
        return (*parts, before, *behind, in_last)

    def _note_changes(self, number: int, blocks: range) -> None:
        """Note that some blocks of an inode are changed, as far as they are unwritten."""
        if unwritten := self._unwritten.get(number):
            self._changed.setdefault(number, set()).update(unwritten.intersection(blocks))

    def _grown(self, change: Write | Resize | Allocate, size: int) -> Sequence[Write]:
        """Return the lost data of the block in which a file ended that grows to ``size``."""
        before = change.size_before
        if size <= before or not before % BLOCK_BYTES:
            return ()
        last = before // BLOCK_BYTES
        self._note_changes(change.inode, range(last, last + 1))
        found = self._take(change.inode, last, last)
        for lost in found:
            if not lost.returns_by_growth:
                self.add(lost)
        return [_again(change, lost) for lost in found if lost.returns_by_growth]

    def _truncated(self, resize: Resize) -> Sequence[Write]:
        """Return the lost data of the block in which a truncation ends.

        Lost data and unwritten blocks behind the new end are gone.
        """
        number, size = resize.inode, resize.size
        last = size // BLOCK_BYTES
        unwritten = self._unwritten.pop(number, _NONE)
        for block in unwritten:
            if block * BLOCK_BYTES < size:
                self.add(UnwrittenBlock(number, block))
        self._note_changes(number, range(last, last + 1))
        taken = self._take(number, last, max(self._lost.get(number, ()), default=last))
        kept = [
            lost._replace(data=lost.data[: size - lost.offset])
            for lost in taken if lost.offset < size
        ]  # fmt: skip
        for lost in kept:
            if not lost.returns_by_truncation:
                self.add(lost)
        return [_again(resize, lost) for lost in kept if lost.returns_by_truncation]

    def _take(self, number: int, first: int, last: int) -> list[LostData]:
        """Remove the lost data of these blocks, and return it in the order of the file."""
        blocks = self._lost.get(number, {})
        taken = [blocks.pop(block) for block in sorted(blocks) if first <= block <= last]
        if not blocks:
            self._lost.pop(number, None)
        return [lost for ranges in taken for lost in ranges]

    def drop(
        self, number: int, start: int, end: int, unsynced: Sequence[MicroOperation]
    ) -> list[int]:
        """Drop the pages from byte ``start`` up to ``end`` in which no data is unsynced.

        Return their blocks, as far as they had lost data, or were unwritten.
        """
        dirty = {
            block
            for micro in unsynced if isinstance(micro, WriteBlock) and micro.number == number
            for block in _blocks_of(micro)
        } | self._changed.get(number, _NONE)  # fmt: skip
        known = {*self._lost.get(number, ()), *self._unwritten.get(number, ())}
        within = range(start // BLOCK_BYTES, -(-end // BLOCK_BYTES))
        dropped = [block for block in sorted(known - dirty) if block in within]
        for block in dropped:
            self._take(number, block, block)
        if left := {*self._unwritten.pop(number, ())}.difference(dropped):
            self._unwritten[number] = left
        return dropped


def _again(change: Write | Resize | Allocate, lost: LostData) -> Write:
    """Return the write of lost data together with a change."""
    return Write(
        change.path, lost.number, lost.offset, lost.data, change.size_before, change.now_ns
    )


def _blocks_of(write: WriteBlock) -> range:
    end = write.offset + len(write.data)
    return range(write.offset // BLOCK_BYTES, -(-end // BLOCK_BYTES))


def _joined(lost: LostData, ranges: Sequence[LostData]) -> list[LostData]:
    """Return the ranges of one block with one more, which overwrites them."""
    apart: list[LostData] = []
    for each in ranges:
        if each.end < lost.offset or lost.end < each.offset:
            apart.append(each)
        else:
            before = each.data[: max(lost.offset - each.offset, 0)]
            behind = each.data[max(lost.end - each.offset, 0) :]
            start = min(each.offset, lost.offset)
            lost = lost._replace(offset=start, data=before + lost.data + behind)
    return sorted([*apart, lost], key=lambda each: each.offset)
