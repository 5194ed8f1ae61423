"""Lost data in the page cache: ``docs/disk.md``, "Failed barriers"."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from sim.disk.cache.operation import (
    Allocate,
    DropPages,
    FailedSync,
    Operation,
    Resize,
    Sync,
    SyncFailure,
    Write,
)
from sim.disk.crash.persistence import PersistenceModel
from tests.litmus.naive_piece import (
    BLOCK,
    Data,
    Piece,
    Platter,
    Size,
    Sized,
    Zeros,
    apply,
    copied,
    parts,
)

_WRITES_THE_LAST_BLOCK = {
    (SyncFailure.XFS, Sized.TRUNCATE),
    (SyncFailure.XFS, Sized.ALLOCATE),
    (SyncFailure.BTRFS, Sized.ALLOCATE),
}
"""The calls that extend a file and write the zeros before them."""


class LostData:
    """The content of the page cache that neither the platter nor an unsynced piece has.

    ``lost`` has the bytes by inode and offset. ``unwritten`` are blocks, by inode and number, of
    which no data reaches the platter; those of ``changed`` were changed after the last barrier. A
    truncation writes no lost data of ``of_btrfs``, and only a write that of ``new``.
    ``sizes`` are the sizes that calls gave to files.
    """

    def __init__(self) -> None:
        self.lost: dict[tuple[int, int], int] = {}
        self.unwritten: set[tuple[int, int]] = set()
        self.changed: set[tuple[int, int]] = set()
        self.of_btrfs: set[tuple[int, int]] = set()
        self.new: set[tuple[int, int]] = set()
        self.sizes: dict[int, int] = {}

    def fail(self, failed: FailedSync, pieces: list[Piece], platter: Platter) -> list[Piece]:
        """Lose the data in the pages of a barrier; return the pieces that are left."""
        if failed.policy is SyncFailure.LYING:
            return pieces
        self.sync(failed)
        lost = _data_in_pages(failed, pieces, platter)
        self.lost |= lost
        blocks = {(inode, offset // BLOCK) for inode, offset in lost}
        new = {each for each in blocks if not _is_durable(*each, platter, pieces)}
        is_btrfs = failed.policy is SyncFailure.BTRFS
        self.of_btrfs = self.of_btrfs - blocks | (blocks if is_btrfs else set())
        self.new = self.new - blocks | (set() if is_btrfs else new)
        self.unwritten |= new if failed.policy is SyncFailure.EXT4 else set()
        keeps_sizes = failed.policy in (SyncFailure.EXT4, SyncFailure.BTRFS)
        left: list[Piece] = []
        for piece in pieces:
            if piece.inode != failed.inode:
                left.append(piece)
            elif isinstance(piece, Data):
                pages = {block for block in _blocks(piece) if _is_in_pages(failed, block)}
                left += _without(piece, pages, keeps_size=keeps_sizes)
            elif isinstance(piece, Zeros):
                start = _end_of_lost_zeros(failed, piece, pieces, platter)
                if start < piece.end:
                    left.append(replace(piece, offset=start, length=piece.end - start))
            elif keeps_sizes or not _counts_as_written(failed, piece):
                left.append(piece)
        return left

    def sync(self, sync: Sync | FailedSync) -> None:
        """Note that a barrier has come after the changes of unwritten blocks."""
        self.changed = {
            (inode, block)
            for inode, block in self.changed
            if sync.inode not in {0, inode} or not _is_in_pages(sync, block)
        }

    def parts_of(self, operation: Operation, model: PersistenceModel) -> Sequence[Operation]:
        """Return an operation together with the lost data that it makes unsynced again.

        Data that adjoins a write is a part of it, and all else is written before. If the model cuts
        writes into units, lost data behind a write comes after the blocks before its own.
        """
        match operation:
            case Write(inode=inode, offset=offset, data=data, size_before=before):
                self.sizes[inode] = max(before, offset + len(data))
                written = dict(enumerate(data, offset))
                content = self._taken(inode, {at // BLOCK for at in written})
                content |= self._taken_by_growth(inode, before, offset + len(data)) | written
                self._lose_in_unwritten(inode, written)
                last = (_end(operation) - 1) // BLOCK * BLOCK
                is_cut = model.unit_bytes and max(content) >= _end(operation)
                halves = [range(last), range(last, last + BLOCK)] if is_cut else [content]
                runs = [each for half in halves for each in _around(written, half, content)]
                return [operation._replace(offset=at, data=run) for at, run in runs]
            case Resize(path, inode, size, before, now_ns):
                self.sizes[inode] = size
                self._truncate(inode, size)
                if size <= before and size % BLOCK:
                    self._change(inode, size // BLOCK)
                content = self._taken_by_growth(inode, before, size)
                if size <= before and size % BLOCK:
                    content = self._taken(inode, {size // BLOCK}, self.new | self.of_btrfs)
                runs = _runs(content)
                return [*(Write(path, inode, *run, before, now_ns) for run in runs), operation]
            case Allocate(path, inode, end, before, now_ns):
                self.sizes[inode] = max(before, end)
                runs = _runs(self._taken_by_growth(inode, before, end))
                return [*(Write(path, inode, *run, before, now_ns) for run in runs), operation]
        return [operation]

    def _taken_by_growth(self, inode: int, before: int, size: int) -> dict[int, int]:
        """Remove and return the lost bytes of the block in which a file ended that grows."""
        if size <= before:
            return {}
        if before % BLOCK:
            self._change(inode, before // BLOCK)
        return self._taken(inode, {before // BLOCK}, self.new)

    def _change(self, inode: int, block: int) -> None:
        if (inode, block) in self.unwritten:
            self.changed.add((inode, block))

    def _taken(
        self, inode: int, blocks: set[int], kept: Collection[tuple[int, int]] = ()
    ) -> dict[int, int]:
        """Remove and return the lost bytes of blocks that can be written, but for some."""
        found = {
            offset: byte
            for (number, offset), byte in self.lost.items()
            if number == inode
            and offset // BLOCK in blocks
            and (inode, offset // BLOCK) not in {*self.unwritten, *kept}
        }
        for offset in found:
            del self.lost[inode, offset]
        return found

    def _lose_in_unwritten(self, inode: int, written: Mapping[int, int]) -> None:
        for offset, byte in written.items():
            if (inode, offset // BLOCK) in self.unwritten:
                self.lost[inode, offset] = byte
                self._change(inode, offset // BLOCK)

    def _truncate(self, inode: int, size: int) -> None:
        for number, offset in list(self.lost):
            if number == inode and offset >= size:
                del self.lost[number, offset]
        self.unwritten = {
            (number, block)
            for number, block in self.unwritten
            if number != inode or block * BLOCK < size
        }

    def reaching(self, pieces: list[Piece], platter: Platter) -> Iterator[Piece]:
        """Yield new pieces without the data that goes to unwritten blocks.

        ``platter`` has all earlier pieces.
        """
        for piece in pieces:
            if isinstance(piece, Data):
                unwritten = {block for inode, block in self.unwritten if inode == piece.inode}
                grows = piece.grows_to > platter[piece.inode].size
                yield from _without(piece, unwritten, keeps_size=grows)
            else:
                yield piece

    def drop(self, dropped: DropPages, pieces: list[Piece]) -> None:
        """Forget the lost data of blocks in which no data is unsynced."""
        unsynced = self.changed | {
            (piece.inode, block)
            for piece in pieces
            if isinstance(piece, Data)
            for block in _blocks(piece)
        }

        def is_dropped(inode: int, block: int) -> bool:
            is_touched = inode == dropped.inode and _is_in_pages(dropped, block)
            return is_touched and (inode, block) not in unsynced

        self.unwritten = {each for each in self.unwritten if not is_dropped(*each)}
        self.lost = {
            (inode, offset): byte
            for (inode, offset), byte in self.lost.items()
            if not is_dropped(inode, offset // BLOCK)
        }

    def show(self, platter: Platter) -> None:
        """Turn a platter with all unsynced pieces into the page cache."""
        for (inode, offset), byte in self.lost.items():
            platter[inode].put(offset, bytes([byte]))
        for inode, size in self.sizes.items():
            platter[inode].size = size


def _data_in_pages(
    failed: FailedSync, pieces: list[Piece], platter: Platter
) -> dict[tuple[int, int], int]:
    """Return the unsynced bytes in the pages of a barrier that it loses, by inode and offset."""
    found: dict[int, int] = {}
    zeros: set[int] = set()
    for piece in pieces:
        match piece:
            case Data(inode=failed.inode):
                found |= dict(enumerate(piece.data, piece.offset))
                zeros -= set(range(piece.offset, piece.end))
            case Zeros(inode=failed.inode):
                over = range(piece.offset, piece.end)
                found = {offset: byte for offset, byte in found.items() if offset not in over}
                end = _end_of_lost_zeros(failed, piece, pieces, platter)
                zeros |= set(range(piece.offset, end))
            case Size(inode=failed.inode, is_set=True):
                found = {offset: byte for offset, byte in found.items() if offset < piece.size}
    return {
        (failed.inode, offset): byte
        for offset, byte in {**dict.fromkeys(zeros, 0), **found}.items()
        if _is_in_pages(failed, offset // BLOCK)
    }


def _end_of_lost_zeros(
    failed: FailedSync, zeros: Zeros, pieces: list[Piece], platter: Platter
) -> int:
    """Return the end of the part of zeros that a barrier loses, their beginning if it is none."""
    inode, block = zeros.inode, zeros.offset // BLOCK
    if not (_is_in_pages(failed, block) and _is_durable(inode, block, platter, pieces)):
        return zeros.offset
    sizes = _sizes(inode, pieces, platter)
    is_written = any(
        isinstance(piece, Size)
        and piece.inode == inode
        and (failed.policy, piece.sized) in _WRITES_THE_LAST_BLOCK
        and sizes[index] < piece.size
        for index, piece in enumerate(pieces)
        if index > pieces.index(zeros)
    )
    return zeros.offset if is_written else max(zeros.offset, min(zeros.end, sizes[-1]))


def _sizes(inode: int, pieces: list[Piece], platter: Platter) -> list[int]:
    """Return the size of a file before each of the pieces, and after all."""
    after = copied(platter)
    sizes = []
    for piece in [None, *pieces]:
        if piece is not None:
            apply(piece, after)
        sizes.append(after[inode].size if inode in after else 0)
    return sizes


def _is_durable(inode: int, block: int, platter: Platter, pieces: list[Piece]) -> bool:
    """Return whether a block has data on the platter, and no truncation has freed it since."""
    is_freed = any(
        isinstance(piece, Size) and piece.inode == inode and 0 <= piece.freed_from <= block * BLOCK
        for piece in pieces
    )
    return inode in platter and platter[inode].has_data(block) and not is_freed


def _counts_as_written(failed: FailedSync, piece: Piece) -> bool:
    match piece:
        case Size(sized=Sized.WRITE | Sized.WITHIN):
            return _is_in_pages(failed, (piece.size - 1) // BLOCK)
        case Size(sized=Sized.BLOCK):
            return not failed.end
    return False


def _is_in_pages(operation: Sync | FailedSync | DropPages, block: int) -> bool:
    start, end = operation.start, operation.end
    return start // BLOCK <= block and (not end or block <= (end - 1) // BLOCK)


def _blocks(piece: Data) -> range:
    return range(piece.offset // BLOCK, (piece.end - 1) // BLOCK + 1)


def _without(data: Data, blocks: Collection[int], *, keeps_size: bool) -> list[Piece]:
    """Return the parts of a piece in other blocks, the last with its size or all with their own."""
    left: list[Data] = []
    for is_lost, group in groupby(
        parts(data.offset, data.end, BLOCK), lambda each: each[0] // BLOCK in blocks
    ):
        among = list(group)
        start, end = among[0][0], among[-1][1]
        content = data.data[start - data.offset : end - data.offset]
        if not is_lost:
            grows_to = min(data.grows_to, end)
            left.append(replace(data, offset=start, data=content, grows_to=grows_to))
    if keeps_size and left:
        left[-1] = replace(left[-1], grows_to=data.grows_to)
    elif keeps_size and data.grows_to:
        return [Size(data.call, data.inode, data.grows_to, Sized.WRITE)]
    return [*left]


def _runs(content: Mapping[int, int]) -> list[tuple[int, bytes]]:
    """Return the ranges of bytes without a gap, by offset."""
    runs: list[tuple[int, bytes]] = []
    for offset in sorted(content):
        start, run = runs[-1] if runs else (offset, b"")
        if start + len(run) == offset:
            runs[-1:] = [(start, run + bytes([content[offset]]))]
        else:
            runs.append((offset, bytes([content[offset]])))
    return runs


def _around(
    written: Mapping[int, int], half: Collection[int], content: Mapping[int, int]
) -> list[tuple[int, bytes]]:
    """Return the ranges of content in a half, that with written bytes as the last one."""
    runs = _runs({at: byte for at, byte in content.items() if at in half})
    return sorted(runs, key=lambda run: any(at in written for at, _ in enumerate(run[1], run[0])))


def _end(write: Write) -> int:
    return write.offset + len(write.data)
