"""Cutting an operation into the pieces that become durable one by one."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final, TypeGuard, assert_never

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.cache.operation import (
    Allocate,
    Create,
    DropPages,
    FailedSync,
    Link,
    Operation,
    Rename,
    Resize,
    SetAttributes,
    Sync,
    Unlink,
    Write,
)
from sim.disk.crash.earlier import Earlier
from sim.disk.crash.micro_operation import (
    ChangeAttributes,
    CreateInode,
    ForgetName,
    FreeBlocks,
    GrowSize,
    Growth,
    LinkName,
    MicroOperation,
    MoveName,
    SetSize,
    Size,
    UnlinkName,
    WriteBlock,
    ZeroTail,
    given_name,
)
from sim.disk.crash.persistence import PersistenceModel, RenameParts, Truncation

_PAGE_BYTES: Final = 32 << 10
"""The largest write that is taken for a page of a database."""

ContentChange = Write | Resize | Allocate


def pieces(
    operation: Operation, number: int, model: PersistenceModel, earlier: Earlier
) -> Iterator[MicroOperation]:
    """Yield the pieces of operation ``number`` in program order; a barrier has none."""
    match operation:
        case Write():
            yield from _data(operation, number, model, earlier)
        case Create(_, inode, mode, uid, gid, link_text, directory, name, now_ns):
            yield CreateInode(number, inode, mode, uid, gid, link_text, now_ns)
            if name:
                yield LinkName(number, inode, directory, name)
        case Rename(_, inode, directory, name, _, to_directory, to_name, replaced, links_left, _):
            move = MoveName(
                number, inode, directory, name, to_directory, to_name, replaced,
                links_left=links_left,
            )  # fmt: skip
            yield from _parts_of_rename(move, earlier)
        case Unlink(_, inode, directory, name, _):
            yield from _parts_of_removal(UnlinkName(number, inode, directory, name), earlier)
        case Link(_, inode, directory, name, _):
            yield LinkName(number, inode, directory, name)
        case Allocate():
            yield from _allocation(operation, number, model, earlier)
        case Resize():
            yield from _size(operation, number, model, earlier)
        case SetAttributes(_, inode, mode, uid, gid, atime_ns, mtime_ns, _):
            yield ChangeAttributes(number, inode, mode, uid, gid, atime_ns, mtime_ns)
        case Sync() | FailedSync() | DropPages():
            pass
        case _:
            assert_never(operation)


def halves(write: Write) -> tuple[Write, ...]:
    """Cut a write that may be a page of a database in two, at the end of the block in its middle.

    A larger write, or one without such an end inside, is returned as it is.
    """
    middle = _end_of_block(write.offset + len(write.data) // 2)
    if len(write.data) > _PAGE_BYTES or middle >= write.offset + len(write.data):
        return (write,)
    return write.split(middle)


def uncut(operation: ContentChange, number: int, model: PersistenceModel) -> WriteBlock | Size:
    """Return the one piece of a change of content that becomes durable as a whole.

    After a failed barrier the end of a block may be the size that a write makes durable.
    """
    if isinstance(operation, Allocate):
        return GrowSize(number, operation.inode, operation.end)
    if isinstance(operation, Resize):
        size = operation.size
        return SetSize(number, operation.inode, size, cut=size)
    end = operation.offset + len(operation.data)
    grows = end
    if end < operation.size_before and not model.sequential:
        block_end = _end_of_block(end)
        grows = block_end if block_end <= operation.size_before else end
    return WriteBlock(
        number, operation.inode, operation.offset, operation.data, fresh=False, appended=False,
        grows=grows,
    )  # fmt: skip


def is_content(operation: Operation, sync: Sync) -> TypeGuard[ContentChange]:
    """Return whether this operation changes only content that a barrier covers."""
    if not (isinstance(operation, ContentChange) and sync.inode in {0, operation.inode}):
        return False
    if sync.data_only and isinstance(operation, Resize) and operation.size == operation.size_before:
        return False
    if not sync.end:
        return True
    # Another change, or a write that leaves a gap, may have pieces in other pages.
    if not isinstance(operation, Write) or operation.offset != operation.size_before:
        return False
    return sync.start <= operation.offset and operation.offset + len(operation.data) <= sync.end


def _data(
    write: Write, number: int, model: PersistenceModel, earlier: Earlier
) -> Iterator[MicroOperation]:
    """Cut a write into units of data, and an append into the sizes that it passes through.

    An unwritten block takes no data.
    """
    start, end = write.offset, write.offset + len(write.data)
    unwritten = earlier.lost.unwritten_blocks(write.inode)
    if not model.has_whole_calls:
        yield from _size_of_block(write, number, write.size_before, start, model, earlier)
    block = max(BLOCK_BYTES, model.unit_bytes) if model.unit_bytes else end
    if unwritten and not unwritten.isdisjoint(_blocks_of(start, end)):
        if model.sequential and not model.unit_bytes:
            yield from _around_unwritten(write, number, unwritten, earlier)
            return
        block = BLOCK_BYTES
    while start < end:
        limit = min(end, (start // block + 1) * block)
        index = start // BLOCK_BYTES
        fresh = index * BLOCK_BYTES >= write.size_before or all(
            earlier.allocates(write.inode, each) for each in _blocks_of(start, limit)
        )
        if index not in unwritten:
            unit, grows = (block, limit) if model.sequential else (model.unit_bytes, 0)
            yield from _units(write, number, start, limit, unit, fresh, grows)
        if index in unwritten or not model.sequential:
            # A failed barrier may have forgotten the size of an earlier write to this place.
            if limit > write.size_before or not earlier.extends_to(write.inode, limit):
                yield GrowSize(number, write.inode, limit)
            yield from _size_of_block(write, number, limit, write.size_before, model, earlier)
        start = limit


def _around_unwritten(
    write: Write, number: int, unwritten: AbstractSet[int], earlier: Earlier
) -> Iterator[MicroOperation]:
    """Cut a write that would be one piece at its unwritten blocks.

    The last piece has its size, if the file does not reach that far already.
    """
    start, end = write.offset, write.offset + len(write.data)
    grows_file = end > write.size_before or not earlier.extends_to(write.inode, end)
    runs: list[tuple[int, int]] = []
    for block in _blocks_of(start, end):
        first, last = max(start, block * BLOCK_BYTES), min(end, (block + 1) * BLOCK_BYTES)
        if block not in unwritten:
            begin = runs.pop()[0] if runs and runs[-1][1] == first else first
            runs.append((begin, last))
    for first, last in runs:
        fresh = first >= write.size_before or all(
            earlier.allocates(write.inode, each) for each in _blocks_of(first, last)
        )
        grows = end if grows_file and last == runs[-1][1] else last
        yield from _units(write, number, first, last, end, fresh, grows)
    if not runs and grows_file:
        yield GrowSize(number, write.inode, end)


def _size_of_block(
    write: Write, number: int, offset: int, gap_end: int, model: PersistenceModel, earlier: Earlier
) -> Iterator[GrowSize]:
    """Yield the end of the block below ``offset`` as a size, if a gap of the file is behind it.

    The kernel writes the block as a whole, so the file gets this size with it. If a model has whole
    calls, it does so only after a failed barrier that has forgotten the size behind the gap.
    """
    size = _end_of_block(offset)
    if model.sequential or not 0 < size <= gap_end:
        return
    is_known = earlier.extends_to if model.has_whole_calls else earlier.reaches
    if not is_known(write.inode, size):
        yield GrowSize(number, write.inode, size, Growth.BLOCK)


def _blocks_of(start: int, end: int) -> range:
    """Return the numbers of the blocks of these bytes."""
    return range(start // BLOCK_BYTES, (end - 1) // BLOCK_BYTES + 1)


def _end_of_block(offset: int) -> int:
    """Return the end of the block that an offset is in, or is the end of."""
    return -(-offset // BLOCK_BYTES) * BLOCK_BYTES


def _size(
    resize: Resize, number: int, model: PersistenceModel, earlier: Earlier
) -> Iterator[MicroOperation]:
    """Cut a truncation. One to the size that the file has is no more than an allocation.

    A block that is not allocated yet reads as zeros behind the end, so its zeros are no piece
    of their own.
    """
    _, inode, size, before, _ = resize
    if size == before:
        yield GrowSize(number, inode, size, Growth.TRUNCATION)
        return
    if size > before:
        tail = earlier.old_tail(inode, before)[: size - before]
        yield from _growth(number, inode, size, before, tail, model)
        return
    block_end = _end_of_block(size)
    new_block = earlier.allocates(inode, size // BLOCK_BYTES)
    match model.truncation:
        case Truncation.WHOLE:
            yield SetSize(number, inode, size, cut=size)
        case Truncation.ZEROS_FIRST | Truncation.ZEROS_APART:
            yield from _zeros(number, inode, size, min(block_end, before), model.unit_bytes)
            apart = model.truncation is Truncation.ZEROS_APART or not new_block
            yield SetSize(number, inode, size, cut=block_end if apart else size)
        case Truncation.FREED_LATER:
            yield SetSize(number, inode, size)
            yield FreeBlocks(number, inode, block_end)
            yield from _zeros(number, inode, size, min(block_end, before), model.unit_bytes)
        case Truncation.APART:
            yield from _zeros(number, inode, size, min(block_end, before), model.unit_bytes)
            yield SetSize(number, inode, size)
            yield FreeBlocks(number, inode, block_end)
        case _:
            assert_never(model.truncation)


def _allocation(
    allocate: Allocate, number: int, model: PersistenceModel, earlier: Earlier
) -> Iterator[MicroOperation]:
    """Cut a ``posix_fallocate``; behind an old tail it is as a truncation that extends the file."""
    _, inode, end, before, _ = allocate
    tail = earlier.old_tail(inode, before)[: max(end - before, 0)]
    if tail:
        yield from _growth(number, inode, end, before, tail, model)
        return
    cause = Growth.ALLOCATION if end > before else Growth.ALLOCATION_WITHIN
    yield GrowSize(number, inode, end, cause)


def _growth(
    number: int, inode: int, size: int, before: int, tail: bytes, model: PersistenceModel
) -> Iterator[MicroOperation]:
    """Yield a larger size, which brings back the bytes of an old tail, and the zeros over them."""
    yield SetSize(number, inode, size, tail_at=before, tail=tail)
    yield from _zeros(number, inode, before, before + len(tail), model.unit_bytes)


def _zeros(number: int, inode: int, start: int, end: int, unit: int) -> Iterator[ZeroTail]:
    while start < end:
        limit = min(end, (start // unit + 1) * unit)
        yield ZeroTail(number, inode, start, limit)
        start = limit


def _units(
    write: Write, number: int, start: int, end: int, unit: int, fresh: bool, grows: int, /
) -> Iterator[MicroOperation]:
    _, inode, offset, data, size_before, _, _ = write
    while start < end:
        limit = min(end, (start // unit + 1) * unit)
        piece = data[start - offset : limit - offset]
        yield WriteBlock(number, inode, start, piece, fresh, start >= size_before, grows)
        start = limit


def parts_of(micro: MicroOperation, earlier: Earlier) -> Iterator[MicroOperation]:
    """Yield the pieces that a rename or a removal of a name consists of; another piece is whole.

    They depend on whether there is a log tree, so its beginning cuts unsynced pieces again.
    """
    match micro:
        case MoveName():
            yield from _parts_of_rename(micro, earlier)
        case UnlinkName():
            yield from _parts_of_removal(micro, earlier)
        case _:
            yield micro


def _parts_of_removal(unlink: UnlinkName, earlier: Earlier) -> Iterator[MicroOperation]:
    number, inode, directory, name, _, _ = unlink
    former = earlier.former_holder(inode, directory, name)
    yield unlink._replace(returns_to=former)
    if former:
        yield UnlinkName(number, former, directory, name)
    durable = earlier.durable_name(inode, directory, name)
    if durable is not None and earlier.rename_parts is RenameParts.SOME:
        yield ForgetName(number, inode, *durable, moved_to=0)


def _parts_of_rename(move: MoveName, earlier: Earlier) -> Iterator[MicroOperation]:
    number, inode, directory, name, to_directory, to_name, replaced, _, _ = move
    is_directory = earlier.is_directory(inode)
    if earlier.rename_parts is RenameParts.ALL and not is_directory:
        if replaced:
            yield UnlinkName(number, replaced, to_directory, to_name)
        yield LinkName(number, inode, to_directory, to_name)
        yield UnlinkName(number, inode, directory, name, to_directory)
        return
    in_parts = earlier.rename_parts is RenameParts.SOME
    if in_parts and _is_loss_apart(move, earlier):
        former = earlier.replaced_before(replaced, to_directory, to_name)
        yield UnlinkName(number, replaced, to_directory, to_name, returns_to=former)
    former = earlier.former_holder(inode, directory, name)
    durable = earlier.durable_name(inode, directory, name)
    if in_parts and directory != to_directory and not is_directory:
        yield LinkName(number, inode, to_directory, to_name, replaced)
        yield UnlinkName(number, inode, directory, name, to_directory, former)
    else:
        yield move._replace(returns_to=former)
    if former:
        yield UnlinkName(number, former, directory, name)
    ends = {(directory, name), (to_directory, to_name)}
    if in_parts and durable is not None and durable not in ends:
        yield ForgetName(number, inode, *durable, moved_to=to_directory)


def _is_loss_apart(move: MoveName, earlier: Earlier) -> bool:
    """Return whether the loss of the new name by the replaced file is a piece of its own."""
    inode, replaced, name = move.number, move.replaced, given_name(move)
    if not (move.links_left or earlier.lacks_directory_barrier(replaced, *name)):
        return False
    return not (earlier.is_directory(replaced) or earlier.is_logged_since(inode, replaced))
