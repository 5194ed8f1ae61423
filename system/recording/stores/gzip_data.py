"""Compression of records and packs: gzip, without a name or a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final
from zlib import MAX_WBITS, Z_BEST_SPEED, compress, compressobj, decompressobj, error

from system.recording.records.errors import RecordCorruptedError

LARGEST_BYTES: Final = 256 << 20
"""The limit of content in memory; a small file can claim to expand to any size."""

MEMBER_START: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
"""The first bytes of all gzip data that is made here."""

_BEHIND: Final = "there are bytes behind the end of the gzip file"
_GZIP: Final = MAX_WBITS + 16
_CHUNK_BYTES: Final = 1 << 16
_PIECE_BYTES: Final = (1 << 20) - 256


def compressed(data: bytes) -> bytes:
    """Return data as gzip; equal data gives equal bytes, because it has no time."""
    return compress(data, Z_BEST_SPEED, _GZIP)


def is_expandable(content: bytes) -> bool:
    """Return whether ``expand`` returns this content, and does not refuse it as too long."""
    return len(content) <= LARGEST_BYTES


def compressed_pieces(content: Iterable[bytes]) -> Iterator[bytes]:
    """Yield content as gzip in pieces, as ``compressed``."""
    compressor = compressobj(Z_BEST_SPEED, wbits=_GZIP)
    yield from map(compressor.compress, content)
    yield compressor.flush()


def expand(data: bytes, path: str) -> bytes:
    """Return the content of gzip data; raises ``RecordCorruptedError``."""
    expanded, end = expand_first(data, path)
    if end < len(data):
        raise RecordCorruptedError(path, [_BEHIND])
    return expanded


def expand_first(data: bytes, path: str, start: int = 0) -> tuple[bytes, int]:
    """Return the content of the gzip file that begins at ``start``, and the offset of its end.

    Raises ``RecordCorruptedError``.
    """
    expander, parts, expanded_bytes, end = decompressobj(wbits=_GZIP), list[bytes](), 0, start
    try:
        while not expander.eof and end < len(data):
            # No more than 1032 times as long.
            parts.append(expander.decompress(data[end : end + _CHUNK_BYTES]))
            end = min(end + _CHUNK_BYTES, len(data))
            expanded_bytes += len(parts[-1])
            if expanded_bytes > LARGEST_BYTES:
                problem = f"it has more than {LARGEST_BYTES} bytes"
                raise RecordCorruptedError(path, [problem])
    except error as bad:
        raise RecordCorruptedError(path, [f"it is not a complete gzip file: {bad}"]) from bad
    if not expander.eof:
        raise RecordCorruptedError(path, ["it is not a complete gzip file: its end is missing"])
    return b"".join(parts), end - len(expander.unused_data)


def expanded(pieces: Iterable[bytes], path: str) -> Iterator[bytes]:
    """Yield the content of gzip data in pieces; raises as ``expand``."""
    expander = decompressobj(wbits=_GZIP)
    try:
        for piece in pieces:
            waiting = piece
            while waiting:
                yield expander.decompress(waiting, _PIECE_BYTES)
                waiting = expander.unconsumed_tail
                if expander.unused_data:
                    raise RecordCorruptedError(path, [_BEHIND])
    except error as bad:
        raise RecordCorruptedError(path, [f"it is not a complete gzip file: {bad}"]) from bad
    if not expander.eof:
        raise RecordCorruptedError(path, ["it is not a complete gzip file: its end is missing"])


def expanded_before_damage(data: bytes) -> Iterator[bytes]:
    """Yield the content of gzip data, up to the first damage that is noticed or to its end."""
    expander, expanded_bytes = decompressobj(wbits=_GZIP), 0
    for start in range(0, len(data), _CHUNK_BYTES):
        chunk, before = data[start : start + _CHUNK_BYTES], expander.copy()
        try:
            piece = expander.decompress(chunk)
        except error:
            yield from _expanded_bytewise(before.decompress, chunk)
            return
        expanded_bytes += len(piece)
        if expanded_bytes > LARGEST_BYTES:
            return
        yield piece
        if expander.eof:
            return


def _expanded_bytewise(decompress: Callable[[bytes], bytes], chunk: bytes) -> Iterator[bytes]:
    """Yield the content of a damaged chunk; the call that finds the damage returns nothing."""
    with suppress(error):
        for place in range(len(chunk)):
            yield decompress(chunk[place : place + 1])
