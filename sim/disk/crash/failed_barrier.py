"""The pieces that a failed barrier leaves to be written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim.disk.cache.operation import FailedSync
from sim.disk.crash.barrier import is_in_pages_of, pages_of
from sim.disk.crash.micro_operation import GrowSize, Growth, MicroOperation, WriteBlock

_STAYING = (Growth.ALLOCATION, Growth.TRUNCATION)


def left_by(failed: FailedSync, micros: Sequence[MicroOperation]) -> Iterator[MicroOperation]:
    """Yield the pieces without those that the kernel forgets because their pages count as clean.

    These are the data in the pages of the barrier, and the sizes of writes that end in them. The
    sizes of truncations, and of allocations that extended the file, stay.
    """
    first, _ = pages_of(failed)
    for index, micro in enumerate(micros):
        if micro.number != failed.inode or not is_in_pages_of(failed, micro):
            yield micro
        elif isinstance(micro, WriteBlock):
            yield from _other_pages(failed, micro)
        elif not isinstance(micro, GrowSize) or micro.cause in _STAYING:
            yield micro
        elif index and _begins_before(first, micros[index - 1], micro):
            yield micro._replace(size=first)


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
