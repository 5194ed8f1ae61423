"""The pieces that a failed barrier leaves to be written, and the data that it loses."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.cache.operation import FailedSync
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


def left_by(failed: FailedSync, micros: Sequence[MicroOperation]) -> Iterator[MicroOperation]:
    """Yield the pieces without those that the kernel forgets because their pages count as clean.

    These are the data in the pages of the barrier, and the sizes of writes that end in them, unless
    the policy keeps these. The sizes of truncations, and of allocations that extended the file,
    stay.
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
        elif keeps_sizes or not isinstance(micro, GrowSize) or micro.cause in _STAYING:
            yield micro
        elif index and _begins_before(first, micros[index - 1], micro):
            yield micro._replace(size=first)


def lost_by(failed: FailedSync, micros: Sequence[MicroOperation]) -> Iterator[WriteBlock]:
    """Yield the data that the page cache has in the pages of the barrier, in program order.

    What an unsynced truncation cut off later is not in it any more.
    """
    first, last = pages_of(failed)
    lost: list[WriteBlock] = []
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
            case ZeroTail(offset=start, end=end):
                lost = list(_without(start, end, lost))
            case _:
                pass
    yield from lost


def first_freed(failed: FailedSync, micros: Sequence[MicroOperation]) -> int:
    """Return the first block that an unsynced truncation of the file has freed."""
    starts = [
        micro.size if isinstance(micro, SetSize) else micro.start
        for micro in micros
        if isinstance(micro, SetSize | FreeBlocks) and micro.number == failed.inode
    ]
    return -(-min(starts, default=sys.maxsize) // BLOCK_BYTES)


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
