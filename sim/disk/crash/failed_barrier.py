"""The pieces that a failed barrier leaves to be written, and the data that it loses."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sim.disk.cache.inode import BLOCK_BYTES, Inode
from sim.disk.cache.operation import FailedSync, SyncFailure
from sim.disk.crash.barrier import is_in_pages_of, pages_of
from sim.disk.crash.micro_operation import (
    FreeBlocks,
    GrowSize,
    Growth,
    MicroOperation,
    SetSize,
    WriteBlock,
    ZeroTail,
)

_STAYING = (Growth.ALLOCATION, Growth.TRUNCATION)
# The file systems that write the last block when a truncation, or an allocation, extends a file.
_BY_TRUNCATION = (SyncFailure.XFS,)
_BY_ALLOCATION = (SyncFailure.XFS, SyncFailure.BTRFS)


def zeros_lost_by(
    failed: FailedSync, micros: Sequence[MicroOperation], platter: Inode | None
) -> Mapping[ZeroTail, int]:
    """Return the zeros that are lost, each with the end of its lost part.

    ``platter`` is the file on the platter. Zeros behind the end of the file stay, and so do those
    in a block of which nothing is durable.
    """
    zeros = [
        (index, micro)
        for index, micro in enumerate(micros)
        if isinstance(micro, ZeroTail)
        and micro.number == failed.inode
        and is_in_pages_of(failed, micro)
    ]
    if not zeros:
        return {}  # Without a look at the platter, which may be undecided.
    freed = first_freed(failed, micros)
    end, first = _end_and_first_zeros(failed, micros, platter)
    return {
        micro: min(end, micro.end)
        for index, micro in zeros
        if index >= first
        and micro.offset < end
        and is_durable(micro.offset // BLOCK_BYTES, platter, freed)
    }


def _end_and_first_zeros(
    failed: FailedSync, micros: Sequence[MicroOperation], platter: Inode | None
) -> tuple[int, int]:
    """Return the size of a file with all its pieces, and the index from which zeros are lost.

    A call that extends the file may have written the zeros before it, by the policy.
    """
    end, first = platter.size if platter else 0, 0
    for index, micro in enumerate(micros):
        if micro.number != failed.inode:
            continue
        match micro:
            case SetSize(size=size) | GrowSize(size=size, cause=Growth.ALLOCATION):
                is_set = isinstance(micro, SetSize)
                if size > end and failed.policy in (_BY_TRUNCATION if is_set else _BY_ALLOCATION):
                    first = index
                end = size if is_set else max(end, size)
            case GrowSize(size=size):
                end = max(end, size)
            case _:
                pass
    return end, first


def left_by(
    failed: FailedSync, micros: Sequence[MicroOperation], zeros: Mapping[ZeroTail, int]
) -> Iterator[MicroOperation]:
    """Yield the pieces without those that the kernel forgets because their pages count as clean.

    These are the data in the pages of the barrier, the zeros that are lost, and the sizes of writes
    that end in the pages, unless the policy keeps these. The sizes of truncations, and of
    allocations that extended the file, stay.
    """
    first, last = pages_of(failed)
    keeps_sizes = failed.policy.keeps_sizes
    for index, micro in enumerate(micros):
        if micro.number != failed.inode or not is_in_pages_of(failed, micro):
            yield micro
        elif isinstance(micro, WriteBlock):
            # A unit may be a whole call.
            parts = list(_without(first, last, [micro]))
            if keeps_sizes and micro.grows:
                yield from parts[:-1]
                yield _with_size(micro, parts)
            else:
                yield from parts
        elif isinstance(micro, ZeroTail) and micro in zeros:
            if zeros[micro] < micro.end:
                yield micro._replace(offset=zeros[micro])
        elif keeps_sizes or not isinstance(micro, GrowSize) or micro.cause in _STAYING:
            yield micro
        elif index and _begins_before(first, micros[index - 1], micro):
            yield micro._replace(size=first)


def lost_by(
    failed: FailedSync, micros: Sequence[MicroOperation], zeros: Mapping[ZeroTail, int]
) -> Iterator[WriteBlock]:
    """Yield the lost zeros, then the data that the page cache has in the pages of the barrier.

    Data that a later, unsynced truncation cut off is in no page any more.
    """
    first, last = pages_of(failed)
    lost: list[WriteBlock] = []
    cleared: list[WriteBlock] = []
    for micro in micros:
        if micro.number != failed.inode:
            continue
        match micro:
            case WriteBlock() if is_in_pages_of(failed, micro):
                start, end = max(micro.offset, first), min(micro.offset + len(micro.data), last)
                data = micro.data[start - micro.offset : end - micro.offset]
                lost.append(micro._replace(offset=start, data=data))
            case SetSize(size=start) | FreeBlocks(start=start):
                lost = list(_without(start, sys.maxsize, lost))
            case ZeroTail(operation=operation, number=number, offset=start, end=end):
                lost = list(_without(start, end, lost))
                if data := bytes(zeros.get(micro, start) - start):
                    cleared.append(
                        WriteBlock(operation, number, start, data, fresh=False, appended=False)
                    )
            case _:
                pass
    yield from (*cleared, *lost)


def first_freed(failed: FailedSync, micros: Sequence[MicroOperation]) -> int:
    """Return the first block that an unsynced truncation of the file has freed."""
    starts = [
        micro.size if isinstance(micro, SetSize) else micro.start
        for micro in micros
        if isinstance(micro, SetSize | FreeBlocks) and micro.number == failed.inode
    ]
    return -(-min(starts, default=sys.maxsize) // BLOCK_BYTES)


def is_durable(block: int, platter: Inode | None, freed: int) -> bool:
    """Return whether something of a block is durable; blocks from ``freed`` on are freed."""
    return block < freed and platter is not None and platter.has_block(block)


def _without(first: int, last: int, writes: Iterable[WriteBlock]) -> Iterator[WriteBlock]:
    """Yield the parts of data before byte ``first`` and from byte ``last`` on."""
    for write in writes:
        start, end = write.offset, write.offset + len(write.data)
        if start < first:
            kept = write.data[: first - start]
            yield write._replace(data=kept, grows=min(write.grows, first))
        if last < end:
            behind = max(last, start)
            yield write._replace(offset=behind, data=write.data[behind - start :])


def _with_size(write: WriteBlock, parts: Sequence[WriteBlock]) -> WriteBlock | GrowSize:
    """Return the last part of a unit with the size of the unit; that alone if no part is left."""
    if parts:
        return parts[-1]._replace(grows=write.grows)
    return GrowSize(write.operation, write.number, write.grows)


def _begins_before(first: int, data: MicroOperation, size: GrowSize) -> bool:
    """Return whether this is the size of a unit that has data before the pages."""
    if not isinstance(data, WriteBlock) or data.operation != size.operation:
        return False
    return data.offset < first
