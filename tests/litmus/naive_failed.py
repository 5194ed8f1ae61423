"""The pieces that a failed barrier leaves: ``docs/disk.md``, "Failed barriers"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sim.disk.cache.operation import FailedSync, SyncFailure
from tests.litmus.naive_piece import BLOCK, Data, Piece, Size, Sized


def left_by(failed: FailedSync, pieces: list[Piece]) -> list[Piece]:
    """Return the pieces without data in the pages of the barrier, and sizes of writes there."""
    if failed.policy is SyncFailure.LYING:
        return pieces
    left: list[Piece] = []
    for piece in pieces:
        if piece.inode == failed.inode and isinstance(piece, Data):
            left += _in_other_pages(failed, piece)
        elif piece.inode != failed.inode or not _counts_as_written(failed, piece):
            left.append(piece)
    return left


def _counts_as_written(failed: FailedSync, piece: Piece) -> bool:
    match piece:
        case Size(sized=Sized.WRITE | Sized.WITHIN):
            return _is_in_pages(failed, piece.size - 1)
        case Size(sized=Sized.BLOCK):
            return not failed.end
    return False


def _in_other_pages(failed: FailedSync, data: Data) -> Iterator[Data]:
    """Yield the parts of a piece in other pages, whole pages as one."""
    start, end = data.offset, data.offset + len(data.data)
    kept = [byte for byte in range(start, end) if not _is_in_pages(failed, byte)]
    before = [byte for byte in kept if byte < failed.start]
    behind = [byte for byte in kept if byte > failed.start]
    for part in (before, behind):
        if part:
            first, last = part[0], part[-1] + 1
            grows_to = min(data.grows_to, last)
            content = data.data[first - start : last - start]
            yield replace(data, offset=first, data=content, grows_to=grows_to)


def _is_in_pages(failed: FailedSync, byte: int) -> bool:
    if not failed.end:
        return True
    return failed.start // BLOCK <= byte // BLOCK <= (failed.end - 1) // BLOCK
