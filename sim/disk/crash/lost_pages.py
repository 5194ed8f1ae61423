"""The pages that failed barriers leave in the page cache: lost data, and unwritten blocks.

Lost data counts as written and is not; the next change of its block makes it unsynced again. Data
in an unwritten block never reaches the platter (docs/disk.md, Failed barriers).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from sim.disk.cache.inode import BLOCK_BYTES, Inode
from sim.disk.cache.operation import Operation, Resize, SyncFailure, Write
from sim.disk.crash.micro_operation import MicroOperation, WriteBlock, ZeroTail
from sim.disk.crash.notes import LostData, UnwrittenBlock

_NONE: Final[frozenset[int]] = frozenset()


class LostPages:
    """The lost data and the unwritten blocks of all files; true if there are any."""

    __slots__ = ("_lost", "_unwritten")

    def __init__(self) -> None:
        # By inode and block; the ranges of a block do not touch one another.
        self._lost: dict[int, dict[int, list[LostData]]] = {}
        self._unwritten: dict[int, set[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._lost or self._unwritten)

    def __iter__(self) -> Iterator[LostData | UnwrittenBlock]:
        for number in sorted(self._lost):
            for block in sorted(self._lost[number]):
                yield from self._lost[number][block]
        for number in sorted(self._unwritten):
            for block in sorted(self._unwritten[number]):
                yield UnwrittenBlock(number, block)

    def unwritten_blocks(self, number: int) -> AbstractSet[int]:
        """Return the unwritten blocks of an inode."""
        return self._unwritten.get(number, _NONE)

    # -- failed barriers -----------------------------------------------------------------

    def add(self, each: LostData | UnwrittenBlock) -> None:
        """Take over an unwritten block, or data of one block that is lost."""
        if isinstance(each, UnwrittenBlock):
            self._unwritten.setdefault(each.number, set()).add(each.block)
            return
        blocks = self._lost.setdefault(each.number, {})
        ranges = blocks.pop(each.offset // BLOCK_BYTES, [])
        blocks[each.offset // BLOCK_BYTES] = _joined(each, ranges)

    def lose(self, write: WriteBlock, policy: SyncFailure, platter: Inode | None) -> None:
        """Note data that a barrier has not written; ``platter`` is its file on the platter."""
        start, end = write.offset, write.offset + len(write.data)
        while start < end:
            block = start // BLOCK_BYTES
            limit = min(end, (block + 1) * BLOCK_BYTES)
            if policy is SyncFailure.EXT4 and (platter is None or block not in platter.blocks):
                self.add(UnwrittenBlock(write.number, block))
            else:
                data = write.data[start - write.offset : limit - write.offset]
                self.add(LostData(write.number, start, data))
            start = limit

    # -- changes -------------------------------------------------------------------------

    def parts_of(self, operation: Operation) -> Sequence[Operation]:
        """Return an operation with the lost data of the blocks that it changes.

        This data is written again with it, and is not lost any more.
        """
        match operation:
            case Write(inode=number) if number in self._lost:
                return self._parts_of_write(operation)
            case Resize(size=size, size_before=before) if size < before:
                return (*self._truncate(operation), operation)
            case _:
                return (operation,)

    def _parts_of_write(self, write: Write) -> Sequence[Write]:
        """Return a write with the lost data of its blocks.

        Lost data beside it makes it wider; other data of the blocks is a write of its own.
        """
        parts: list[Write] = []
        start, data = write.offset, write.data
        end = start + len(data)
        for lost in self._take(write.inode, start // BLOCK_BYTES, (end - 1) // BLOCK_BYTES):
            if lost.end < start or end < lost.offset:
                parts.append(write._replace(offset=lost.offset, data=lost.data, direct=False))
                continue
            if lost.offset < start:
                data, start = lost.data[: start - lost.offset] + data, lost.offset
            if end < lost.end:
                data, end = data + lost.data[end - lost.offset :], lost.end
        return (*parts, write._replace(offset=start, data=data))

    def _truncate(self, resize: Resize) -> Sequence[Write]:
        """Return the lost data of the block that a truncation cuts through.

        Lost data and unwritten blocks behind the new end are gone.
        """
        number, size = resize.inode, resize.size
        unwritten = self._unwritten.pop(number, _NONE)
        for block in unwritten:
            if block * BLOCK_BYTES < size:
                self.add(UnwrittenBlock(number, block))
        last = size // BLOCK_BYTES
        taken = self._take(number, last, max(self._lost.get(number, ()), default=last))
        return [
            Write(
                resize.path, number, lost.offset, lost.data[: size - lost.offset],
                resize.size_before, resize.now_ns,
            )
            for lost in taken if lost.offset < size
        ]  # fmt: skip

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
        """Drop the pages from byte ``start`` up to ``end`` in which nothing is unsynced.

        Return their blocks, as far as they had lost data, or were unwritten.
        """
        dirty = {
            block
            for micro in unsynced if micro.number == number
            for block in _changed_by(micro)
        }  # fmt: skip
        known = {*self._lost.get(number, ()), *self._unwritten.get(number, ())}
        within = range(start // BLOCK_BYTES, -(-end // BLOCK_BYTES))
        dropped = [block for block in sorted(known - dirty) if block in within]
        for block in dropped:
            self._take(number, block, block)
        if left := {*self._unwritten.pop(number, ())}.difference(dropped):
            self._unwritten[number] = left
        return dropped


def _changed_by(micro: MicroOperation) -> range:
    """Return the blocks in which a piece changes data."""
    match micro:
        case WriteBlock(offset=start, data=data):
            end = start + len(data)
        case ZeroTail(offset=start, end=end):
            pass
        case _:
            return range(0)
    return range(start // BLOCK_BYTES, -(-end // BLOCK_BYTES))


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
            lost = LostData(lost.number, start, before + lost.data + behind)
    return sorted([*apart, lost], key=lambda each: each.offset)
