"""The pieces that a failed barrier leaves to be written, and the data that it loses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim.disk.cache.operation import FailedSync
from sim.disk.crash.barrier import is_in_pages_of, pages_of
from sim.disk.crash.micro_operation import GrowSize, Growth, MicroOperation, WriteBlock

_STAYING = (Growth.ALLOCATION, Growth.TRUNCATION)


def left_by(failed: FailedSync, micros: Sequence[MicroOperation]) -> Iterator[MicroOperation]:
    """Yield the pieces without those that the kernel forgets because their pages count as clean.

    These are the data in the pages of the barrier, and the sizes of writes that end in them, unless
    the policy keeps these. The sizes of truncations, and of allocations that extended the file,
    stay.
    """
    first, _ = pages_of(failed)
    keeps_sizes = failed.policy.keeps_sizes
    for index, micro in enumerate(micros):
        if micro.number != failed.inode or not is_in_pages_of(failed, micro):
            yield micro
        elif isinstance(micro, WriteBlock):
            yield from _other_pages(failed, micro)
            if keeps_sizes and micro.grows:
                yield GrowSize(micro.operation, micro.number, micro.grows)
        elif keeps_sizes or not isinstance(micro, GrowSize) or micro.cause in _STAYING:
            yield micro
        elif index and _begins_before(first, micros[index - 1], micro):
            yield micro._replace(size=first)


def lost_by(failed: FailedSync, micros: Sequence[MicroOperation]) -> Iterator[WriteBlock]:
    """Yield the data in the pages of the barrier, in program order."""
    first, last = pages_of(failed)
    for micro in micros:
        if (
            isinstance(micro, WriteBlock)
            and micro.number == failed.inode
            and is_in_pages_of(failed, micro)
        ):
            start, end = max(micro.offset, first), min(micro.offset + len(micro.data), last)
            data = micro.data[start - micro.offset : end - micro.offset]
            yield micro._replace(offset=start, data=data)


def _other_pages(failed: FailedSync, write: WriteBlock) -> Iterator[WriteBlock]:
    """Yield the parts of a unit before and behind the pages; a unit may be a whole call."""
    first, last = pages_of(failed)
    start, end = write.offset, write.offset + len(write.data)
    if start < first:
        yield write._replace(data=write.data[: first - start], grows=min(write.grows, first))
    if last < end:
        yield write._replace(offset=last, data=write.data[last - start :])


def _begins_before(first: int, data: MicroOperation, size: GrowSize) -> bool:
    """Return whether this is the size of a unit that has data before the pages."""
    if not isinstance(data, WriteBlock) or data.operation != size.operation:
        return False
    return data.offset < first
