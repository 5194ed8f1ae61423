"""Contents of a stack: sizes, bytes and attributes, read from their last change backwards."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.crash.micro_operation import (
    ChangeAttributes,
    CreateInode,
    FreeBlocks,
    GrowSize,
    MicroOperation,
    SetSize,
    WriteBlock,
    ZeroTail,
    stale_bytes,
)
from sim.disk.crash.undecided.stack import Decision, Stack


class Attributes(NamedTuple):
    """Permission bits with the type, owner, the text of a symbolic link, and times."""

    mode: int
    uid: int
    gid: int
    link_text: str
    times_ns: tuple[int, int, int]


def size(stack: Stack, number: int, cap: int) -> int | Decision:
    """Return the size of a file in bytes, or ``cap`` if it is larger."""
    return size_at(stack, stack.top, number, cap)


def size_at(stack: Stack, level: int, number: int, cap: int) -> int | Decision:
    """Return the size of a file on a layer in bytes, or ``cap`` if it is larger."""
    found = 0
    while level >= 0:
        layer = stack.layers[level]
        for index in reversed(layer.sizes.get(number, ())):
            if found >= cap:
                return cap
            micro = layer.micros[index]
            if not isinstance(micro, SetSize) and _grown_to(micro) <= found:
                continue
            survived = stack.survived(level, index)
            if isinstance(survived, Decision):
                return survived
            if survived and isinstance(micro, SetSize):
                return min(max(found, micro.size), cap)
            if survived:
                found = _grown_to(micro)
        if number in layer.creations:
            created = layer.micros[layer.creations[number]]
            assert isinstance(created, CreateInode), created
            return min(max(found, len(os.fsencode(created.link_text))), cap)
        level -= 1
    inode = stack.base.get(number)
    return min(max(found, 0 if inode is None else inode.size), cap)


def _grown_to(micro: MicroOperation) -> int:
    """Return the size of the file after this piece, if it was smaller before."""
    if isinstance(micro, GrowSize):
        return micro.size
    assert isinstance(micro, WriteBlock), micro
    return micro.grows


def data(stack: Stack, number: int, start: int, end: int) -> bytes | Decision:
    """Return the bytes of a file from ``start`` to ``end``, which may lie beyond its size."""
    return _stored(stack, stack.top, number, start, end)


def _stored(stack: Stack, level: int, number: int, start: int, end: int) -> bytes | Decision:
    """Return the bytes that a layer stores, those beyond the size as well."""
    if level < 0:
        inode = stack.base.get(number)
        return bytes(end - start) if inode is None else inode.stored(start, end - start)
    layer = stack.layers[level]
    return _Events(stack, level, number).after(len(layer.contents.get(number, ())), start, end)


def _booted(stack: Stack, level: int, number: int, start: int, end: int) -> bytes | Decision:
    """Return the bytes that a boot finds after a layer: beyond the size they are zeros."""
    most = _stored_until(stack, level, number)
    if not most:
        return _stored(stack, level, number, start, end)
    length = size_at(stack, level, number, max(end, most))
    if isinstance(length, Decision):
        capped = size_at(stack, level, number, end)
        if isinstance(capped, Decision) or capped < end:
            return length if not isinstance(capped, Decision) else capped
        length = end
    if length >= most or length >= end:
        return _stored(stack, level, number, start, end)
    if length <= start:
        return bytes(end - start)
    found = _stored(stack, level, number, start, length)
    return found if isinstance(found, Decision) else found + bytes(end - length)


def _stored_until(stack: Stack, level: int, number: int) -> int:
    """Return the end of the bytes that a file may have beyond its size after a layer; or 0."""
    most = stack.layers[level].ends.get(number, 0) if level >= 0 else 0
    inode = stack.base.get(number) if level == 0 else None
    if inode is not None and inode.stored_end > inode.size:
        most = max(most, inode.stored_end)
    return most


class _Events:
    """The changes of the bytes of one file on one layer, backwards."""

    def __init__(self, stack: Stack, level: int, number: int) -> None:
        self._stack = stack
        self._level = level
        self._number = number
        self._layer = stack.layers[level]
        self._progress = stack.progress[level]
        self._events = self._layer.contents.get(number, [])

    def after(self, count: int, start: int, end: int) -> bytes | Decision:
        """Return the bytes from ``start`` to ``end`` after the first ``count`` changes."""
        if start >= end:
            return b""
        while count:
            index = self._events[count - 1]
            micro = self._layer.micros[index]
            if not self._is_without_effect(index):
                for change in _written(micro):
                    if change.start < end and start < change.end:
                        return self._around(count, start, end, change)
            count -= 1
        if self._number in self._layer.creations:
            return bytes(end - start)
        return _booted(self._stack, self._level - 1, self._number, start, end)

    def _is_without_effect(self, index: int) -> bool:
        """Return whether a piece is lost, and no stale bytes can show in its place."""
        progress, layer = self._progress, self._layer
        lost = progress.of(layer, index)[1] == 0
        is_stale = progress.stale >> index & 1 or progress.can_be_stale(layer, index)
        return lost and not is_stale

    def _around(self, count: int, start: int, end: int, change: _Change) -> bytes | Decision:
        """Return the bytes from ``start`` to ``end``, of which change ``count`` writes some."""
        first, last = max(change.start, start), min(change.end, end)
        found = self._where_written(count, first, last, change)
        if isinstance(found, Decision):
            return found
        left = self.after(count, start, first)
        if isinstance(left, Decision):
            return left
        right = self.after(count, last, end)
        return right if isinstance(right, Decision) else left + found + right

    def _where_written(
        self, count: int, first: int, last: int, change: _Change
    ) -> bytes | Decision:
        """Return the bytes from ``first`` to ``last``, all of which change ``count`` writes."""
        index = self._events[count - 1]
        length = self._layer.lengths[index]
        low, high = self._progress.of(self._layer, index)
        if low == length:
            return change.part(first, last)
        if self._progress.stale >> index & 1:
            return self._stale(index, first, last)
        below = self.after(count - 1, first, last)
        if isinstance(below, Decision):
            whole = Decision(self._level, index, ((length, length), (0, length - 1)))
            return below if high < length else whole
        found = self._mixed(index, first, change, below)
        if isinstance(found, Decision) or not self._progress.can_be_stale(self._layer, index):
            return found
        if self._stale(index, first, last) == found:
            return found
        return Decision(self._level, index, ((1, high), (0, 0)) if high else ())

    def _mixed(self, index: int, first: int, change: _Change, below: bytes) -> bytes | Decision:
        """Return the bytes from ``first`` on: those of the change as far as it came, then others.

        ``below`` are the bytes before the change.
        """
        last = first + len(below)
        low, high = self._progress.of(self._layer, index)
        new = change.part(first, last)
        if self._layer.lengths[index] == 1:
            changes = high and new != below
            return Decision(self._level, index, ((1, 1), (0, 0))) if changes else below
        for place in range(max(first, change.start + low), min(last, change.start + high)):
            if new[place - first] != below[place - first]:
                kept = place - change.start
                return Decision(self._level, index, ((kept + 1, high), (low, kept)))
        kept = min(max(change.start + low - first, 0), len(below))
        return new[:kept] + below[kept:]

    def _stale(self, index: int, first: int, last: int) -> bytes:
        micro = self._layer.micros[index]
        assert isinstance(micro, WriteBlock), micro
        return stale_bytes(micro, first, last)


class _Change(NamedTuple):
    """A place that a piece changes, in bytes: to ``data``, or to zeros."""

    start: int
    end: int
    data: bytes | None = None

    @property
    def frees(self) -> bool:
        """Whether it frees the blocks of its place."""
        return self.end == sys.maxsize

    def concerns_block(self, start: int) -> bool:
        """Return whether it frees the block from byte ``start`` on, or stores bytes in it."""
        if self.frees:
            return self.start <= start
        return self.start < start + BLOCK_BYTES and start < self.end

    def part(self, first: int, last: int) -> bytes:
        """Return the bytes that it writes from ``first`` to ``last``."""
        if self.data is None:
            return bytes(last - first)
        return self.data[first - self.start : last - self.start]


def _written(micro: MicroOperation) -> Iterator[_Change]:
    """Yield the places that a piece changes, the last one first."""
    match micro:
        case WriteBlock(offset=offset, data=written):
            yield _Change(offset, offset + len(written), written)
        case ZeroTail(offset=offset, end=end):
            yield _Change(offset, end)
        case FreeBlocks(start=start):
            yield _Change(start, sys.maxsize)
        case SetSize(cut=cut, tail=tail, tail_at=at):
            if cut is not None:
                yield _Change(cut, sys.maxsize)
            if tail:
                yield _Change(at, at + len(tail), tail)
        case _:
            raise AssertionError(micro)


def has_block(stack: Stack, number: int, block: int) -> bool | Decision:
    """Return whether anything is stored in a block of a file."""
    start = block * BLOCK_BYTES
    for level in range(stack.top, -1, -1):
        found = _block_on_layer(stack, level, number, start)
        if found is not None:
            return found
        # The boot after a layer drops what lies beyond the end.
        length = size_at(stack, level - 1, number, start + 1) if level else start + 1
        if isinstance(length, Decision) or length <= start:
            return length if isinstance(length, Decision) else False
    inode = stack.base.get(number)
    return inode is not None and inode.has_block(block)


def _block_on_layer(stack: Stack, level: int, number: int, start: int) -> bool | Decision | None:
    """Return whether a layer stores the block from byte ``start`` on; None: it changes nothing."""
    layer, progress = stack.layers[level], stack.progress[level]
    for index in reversed(layer.contents.get(number, ())):
        for change in _written(layer.micros[index]):
            if not change.concerns_block(start):
                continue
            low, high = progress.of(layer, index)
            if low or progress.stale >> index & 1:
                return not change.frees
            if high:
                return Decision(level, index, ((1, high), (0, 0)))
            if progress.can_be_stale(layer, index):
                return Decision(level, index)
    return None


def attributes(stack: Stack, number: int) -> Attributes | Decision:
    """Return the attributes of an inode that exists."""
    changed: ChangeAttributes | None = None
    for level in range(stack.top, -1, -1):
        layer = stack.layers[level]
        for index in reversed(layer.attributes.get(number, ())):
            if changed is not None:
                break
            survived = stack.survived(level, index)
            if isinstance(survived, Decision):
                return survived
            if survived:
                micro = layer.micros[index]
                assert isinstance(micro, ChangeAttributes), micro
                changed = micro
        creation = layer.creations.get(number)
        if creation is not None:
            created = layer.micros[creation]
            assert isinstance(created, CreateInode), created
            _, _, mode, uid, gid, link_text, now_ns = created
            return _changed(Attributes(mode, uid, gid, link_text, (now_ns,) * 3), changed)
    inode = stack.base[number]
    times_ns = (inode.atime_ns, inode.mtime_ns, inode.ctime_ns)
    found = Attributes(inode.mode, inode.uid, inode.gid, inode.link_text, times_ns)
    return _changed(found, changed)


def _changed(found: Attributes, changed: ChangeAttributes | None) -> Attributes:
    if changed is None:
        return found
    times_ns = (changed.atime_ns, changed.mtime_ns, found.times_ns[2])
    return Attributes(changed.mode, changed.uid, changed.gid, found.link_text, times_ns)
