"""Cutting an operation into the pieces that become durable one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import assert_never

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.cache.operation import (
    Create,
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
from sim.disk.crash.micro_operation import (
    ChangeAttributes,
    CreateInode,
    LinkName,
    MicroOperation,
    MoveName,
    SetSize,
    UnlinkName,
    WriteBlock,
)
from sim.disk.crash.persistence import PersistenceModel

Allocates = Callable[[int, int], bool]


def pieces(
    operation: Operation, number: int, model: PersistenceModel, allocates: Allocates
) -> Iterator[MicroOperation]:
    """Yield the pieces of operation ``number`` in program order; a barrier has none.

    ``allocates(inode, block)`` is whether an unsynced write allocates this block.
    """
    match operation:
        case Write():
            yield from _data(operation, number, model, allocates)
        case Create(_, inode, mode, uid, gid, link_text, directory, name, now_ns):
            yield CreateInode(number, inode, mode, uid, gid, link_text, now_ns)
            if name:
                yield LinkName(number, inode, directory, name)
        case Rename():
            yield from _names(operation, number, model)
        case Unlink(_, inode, directory, name, _):
            yield UnlinkName(number, inode, directory, name)
        case Link(_, inode, directory, name, _):
            yield LinkName(number, inode, directory, name)
        case Resize():
            yield uncut(operation, number)
        case SetAttributes(_, inode, mode, uid, gid, atime_ns, mtime_ns, _):
            yield ChangeAttributes(number, inode, mode, uid, gid, atime_ns, mtime_ns)
        case Sync() | FailedSync():
            pass
        case _:
            assert_never(operation)


def uncut(operation: Write | Resize, number: int) -> WriteBlock | SetSize:
    """Return the one piece of a change of content that becomes durable as a whole."""
    if isinstance(operation, Resize):
        return SetSize(number, operation.inode, operation.size, append=False)
    end = operation.offset + len(operation.data)
    return WriteBlock(
        number, operation.inode, operation.offset, operation.data, fresh=False, appended=False,
        grows=end,
    )  # fmt: skip


def _data(
    write: Write, number: int, model: PersistenceModel, allocates: Allocates
) -> Iterator[MicroOperation]:
    """Cut a write into units of data, and an append into the sizes that it passes through."""
    start, end = write.offset, write.offset + len(write.data)
    block = BLOCK_BYTES if model.unit_bytes else end
    while start < end:
        limit = min(end, (start // block + 1) * block)
        index = start // BLOCK_BYTES
        fresh = index * BLOCK_BYTES >= write.size_before or allocates(write.inode, index)
        if model.sequential:
            yield from _units(write, number, start, limit, block, fresh, limit)
        else:
            yield from _units(write, number, start, limit, model.unit_bytes, fresh, 0)
            if limit > write.size_before:
                yield SetSize(number, write.inode, limit, append=True)
        start = limit


def _units(
    write: Write, number: int, start: int, end: int, unit: int, fresh: bool, grows: int, /
) -> Iterator[MicroOperation]:
    _, inode, offset, data, size_before, _ = write
    while start < end:
        limit = min(end, (start // unit + 1) * unit)
        piece = data[start - offset : limit - offset]
        yield WriteBlock(number, inode, start, piece, fresh, start >= size_before, grows)
        start = limit


def _names(rename: Rename, number: int, model: PersistenceModel) -> Iterator[MicroOperation]:
    _, inode, directory, name, _, to_directory, to_name, replaced, _ = rename
    if model.atomic_rename:
        yield MoveName(number, inode, directory, name, to_directory, to_name, replaced)
        return
    if replaced:
        yield UnlinkName(number, replaced, to_directory, to_name)
    yield LinkName(number, inode, to_directory, to_name)
    yield UnlinkName(number, inode, directory, name)
