"""The content of a block device: blocks in memory over a base that is shared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

BLOCK_BYTES: Final = 4096
SECTOR_BYTES: Final = 512

_ZEROS: Final = bytes(BLOCK_BYTES)


class BlockImage:
    """A device whose blocks are those of ``base`` until they are written; a hole reads as zeros."""

    __slots__ = ("_base", "_written")

    def __init__(self, base: Mapping[int, bytes]) -> None:
        self._base = base
        self._written: dict[int, bytes] = {}

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes."""
        parts = []
        for block, start, end in _pieces(offset, size):
            content = self._block(block)
            parts.append(content if end - start == BLOCK_BYTES else content[start:end])
        return b"".join(parts)

    def write(self, offset: int, data: bytes) -> None:
        """Replace the bytes from ``offset`` on."""
        position = 0
        for block, start, end in _pieces(offset, len(data)):
            piece = data[position : position + end - start]
            position += end - start
            if len(piece) < BLOCK_BYTES:
                content = self._block(block)
                piece = content[:start] + piece + content[end:]
            self._written[block] = piece

    def blocks(self) -> dict[int, bytes]:
        """Return a copy of the blocks that are not zeros."""
        changed = {block: _ZEROS if b == _ZEROS else b for block, b in self._written.items()}
        blocks = {**self._base, **changed}
        return {block: content for block, content in blocks.items() if content is not _ZEROS}

    def _block(self, block: int) -> bytes:
        written = self._written.get(block)
        return self._base.get(block, _ZEROS) if written is None else written


def _pieces(offset: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Yield (block, start, end) for each block of a range of bytes."""
    end = offset + size
    while offset < end:
        block, start = divmod(offset, BLOCK_BYTES)
        stop = min(BLOCK_BYTES, start + end - offset)
        yield block, start, stop
        offset += stop - start
