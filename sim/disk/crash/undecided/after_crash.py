"""The boxes after one more crash: all survivor sets of the pieces of the lifetime before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from immutables import Map

from sim.disk.cache.inode import BLOCK_BYTES, ROOT
from sim.disk.cache.inode_table import InodeTable
from sim.disk.cache.operation import (
    Allocate,
    Create,
    DropPages,
    Link,
    Operation,
    Rename,
    Resize,
    SetAttributes,
    Unlink,
    Write,
)
from sim.disk.crash.earlier import Earlier
from sim.disk.crash.log_order import LogOrder
from sim.disk.crash.lost_pages import LostPages
from sim.disk.crash.micro_operation import MicroOperation, WriteBlock
from sim.disk.crash.notes import Notes
from sim.disk.crash.ordering import Ordering
from sim.disk.crash.persistence import SCC
from sim.disk.crash.pieces import pieces
from sim.disk.crash.undecided.box import Box, KilledCache, Times
from sim.disk.crash.undecided.layer import Layer
from sim.disk.crash.undecided.progress import Progress, undecided
from sim.disk.crash.undecided.unsynced_above import Lifetime


def after_power_cut(
    box: Box, layer: Layer, since: int, tears: int, next_inode: int
) -> Iterator[Box]:
    """Yield the boxes of a power cut after a lifetime that ``box`` booted.

    ``layer`` has its pieces. The boxes hold only survivor sets in which an unsynced piece from
    index ``since`` on makes a difference; all, if that is 0. ``tears`` is the largest number of
    torn pieces.
    """
    for progress in _new_states(layer, since, tears):
        yield box._replace(
            layers=(*box.layers, layer),
            progress=(*box.progress, progress),
            next_inode=next_inode,
            numbers=(ROOT,),
            cache=None,
            durable=(),
            carried=(),
        )


def _new_states(layer: Layer, since: int, tears: int) -> Iterator[Progress]:
    state: Progress | None = undecided(layer, tears)
    assert state is not None
    if not since:
        yield state
        return
    for index in range(layer.durable + since, len(layer.micros)):
        assert state is not None
        arrives = state.limit(layer, index, 1, layer.lengths[index])
        if arrives is not None:
            yield arrives
        state = state.limit(layer, index, 0, 0)
        assert state is not None, "the last pieces can be lost"
        if state.can_be_stale(layer, index):
            stale = state.with_stale(layer, index)
            if stale is not None:
                yield stale
            state = state.without_stale(index)


def after_kill(lifetime: Lifetime, operations: Sequence[Operation], next_inode: int) -> Box:
    """Return the box of a kill after these operations of a recovery."""
    box, unsynced = lifetime.box, lifetime.unsynced
    before = box.cache or KilledCache()
    changes = [] if before.layer is None else list(before.layer.micros)
    changes += _page_changes(operations, lifetime.dropped)
    page = Layer(changes, Ordering(SCC))
    return box._replace(
        next_inode=next_inode,
        numbers=(ROOT,),
        cache=KilledCache(
            before.base, page, _page_times(before.times_ns, operations), unsynced.lost.inodes
        ),
        durable=tuple(lifetime.durable),
        carried=unsynced.carried_over(len(operations)),
    )


def _page_changes(
    operations: Iterable[Operation], dropped: Iterable[Mapping[int, bytes]]
) -> Iterator[MicroOperation]:
    """Yield the changes that operations make in the page cache, which they reach as a whole.

    ``dropped`` has the blocks of each operation that drops pages.
    """
    nothing = Earlier(InodeTable(Map()), Ordering(SCC), Notes(), LogOrder(), LostPages())
    contents = iter(dropped)
    for number, operation in enumerate(operations, 1):
        if isinstance(operation, DropPages):
            for block, data in next(contents).items():
                start = block * BLOCK_BYTES
                yield WriteBlock(number, operation.inode, start, data, fresh=False, appended=False)
        yield from pieces(operation, number, SCC, nothing)


def _page_times(before: Mapping[int, Times], operations: Iterable[Operation]) -> dict[int, Times]:
    """Return the times in the page cache after some more operations, as far as these set any."""
    found = dict(before)

    def touch(number: int, now_ns: int, *, modified: bool) -> None:
        atime_ns, mtime_ns, _ = found.get(number, (None, None, None))
        found[number] = (atime_ns, now_ns if modified else mtime_ns, now_ns)

    for operation in operations:
        match operation:
            case Write() | Resize() | Allocate():
                touch(operation.inode, operation.now_ns, modified=True)
            case Create(inode=inode, directory=directory, name=name, now_ns=now_ns):
                found[inode] = (now_ns, now_ns, now_ns)
                if name:
                    touch(directory, now_ns, modified=True)
            case Link(inode=inode, directory=directory, now_ns=now_ns):
                touch(inode, now_ns, modified=False)
                touch(directory, now_ns, modified=True)
            case Unlink(inode=inode, directory=directory, now_ns=now_ns):
                touch(inode, now_ns, modified=False)
                touch(directory, now_ns, modified=True)
            case Rename():
                touch(operation.inode, operation.now_ns, modified=False)
                touch(operation.replaced, operation.now_ns, modified=False)
                touch(operation.directory, operation.now_ns, modified=True)
                touch(operation.to_directory, operation.now_ns, modified=True)
            case SetAttributes(inode=inode, atime_ns=atime_ns, mtime_ns=mtime_ns, now_ns=now_ns):
                found[inode] = (atime_ns, mtime_ns, now_ns)
            case _:
                pass
    return found


def renumbered(operations: Iterable[Operation], box: Box, first_new: int) -> list[Operation]:
    """Return operations of a boot with the numbers that the inodes have in a box.

    The boot numbers inodes that it creates from ``first_new`` on, and others as it meets them.
    """

    def real(number: int) -> int:
        if number >= first_new:
            return box.next_inode + number - first_new
        return box.numbers[number - 1] if number else 0

    return [_renumbered(operation, real) for operation in operations]


def _renumbered(operation: Operation, real: Callable[[int], int]) -> Operation:
    match operation:
        case Rename():
            return operation._replace(
                inode=real(operation.inode),
                directory=real(operation.directory),
                to_directory=real(operation.to_directory),
                replaced=real(operation.replaced),
            )
        case Create() | Link() | Unlink():
            return operation._replace(
                inode=real(operation.inode), directory=real(operation.directory)
            )
        case _:
            return operation._replace(inode=real(operation.inode))
