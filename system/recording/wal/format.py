r"""The bytes of the write-ahead log: segments, headers and entries (docs/file-formats.md).

    segment = SYWAL\x01 [first:8][salt:8][crc32:4]  entry*
    entry   = [length:4][type:1][sequence:8][crc32:4][payload]

Integers are big-endian. The crc of a header covers the 22 bytes before it. The crc of an entry
starts with that of the header and covers type, sequence, length and payload, so an entry is
valid in its own segment only: ``salt`` differs from segment to segment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from system.storage.path import name_of

MAGIC: Final = b"SYWAL"
VERSION: Final = 1
LARGEST_PAYLOAD: Final = 16 << 20
DIRECTORY: Final = "wal"
CURRENT: Final = "current"
NEXT_CURRENT: Final = "current.next"
SEGMENT_NAME: Final = re.compile(r"([0-9]{8}|[1-9][0-9]{8,})\.wal")

_HEADER: Final = Struct(">5sBQQ")
_CRC: Final = Struct(">I")
ENTRY: Final = Struct(">IBQI")
"""Length, type, sequence and crc of an entry."""
COVERED: Final = Struct(">BQI")
"""Type, sequence and length, as the crc covers them in front of the payload."""

HEADER_BYTES: Final = _HEADER.size + _CRC.size
ENTRY_BYTES: Final = ENTRY.size
SHORTEST_ENTRY: Final = ENTRY_BYTES + 1
SHORTEST_LOG_RECORD: Final = ENTRY_BYTES + 76
"""The least bytes of a log record's payload, which has at least a time and an execution's id."""


def segment_name(number: int) -> str:
    """Return the name of a segment, from 1; a number has at least eight digits."""
    return f"{number:08d}.wal"


def number_of(path: str) -> int:
    """Return the number of the segment at a path."""
    found = SEGMENT_NAME.fullmatch(name_of(path))
    assert found is not None
    return int(found[1])


class SegmentHeader(NamedTuple):
    """``first`` is the sequence number of the first entry."""

    first: int
    salt: int
    version: int = VERSION

    @property
    def crc(self) -> int:
        """The crc of the header, with which those of its entries start."""
        return crc32(_HEADER.pack(MAGIC, self.version, self.first, self.salt))

    def encoded(self) -> bytes:
        """Return the 26 bytes."""
        covered = _HEADER.pack(MAGIC, self.version, self.first, self.salt)
        return covered + _CRC.pack(self.crc)


class ReadHeader(NamedTuple):
    """The first bytes of a segment; ``is_whole`` if they are a header with the right crc.

    ``seeds`` are the crcs with which the entries may start: for a damaged header, the stored crc
    and the crc computed from its bytes.
    """

    header: SegmentHeader
    is_whole: bool
    seeds: tuple[int, ...]


def read_header(content: bytes) -> ReadHeader | None:
    """Return the header of a segment; None if there are too few bytes."""
    if len(content) < HEADER_BYTES:
        return None
    magic, version, first, salt = _HEADER.unpack_from(content)
    (stored,) = _CRC.unpack_from(content, _HEADER.size)
    actual = crc32(content[: _HEADER.size])
    header = SegmentHeader(first, salt, version)
    if stored == actual and magic == MAGIC:
        return ReadHeader(header, is_whole=True, seeds=(stored,))
    return ReadHeader(header, is_whole=False, seeds=(stored, actual))


def seed_of_entry(content: bytes, start: int) -> int | None:
    """Return the seed with which the crc of the entry at an offset is right; None if it is cut off.

    There is one for any bytes, because a crc is a linear function of the value it starts with:
    each bit of the seed always changes the same bits of the result.
    """
    length, entry_type, sequence, crc = ENTRY.unpack_from(content, start)
    payload = content[start + ENTRY_BYTES : start + ENTRY_BYTES + length]
    if not 1 <= length <= LARGEST_PAYLOAD or len(payload) < length:
        return None

    def crc_from(seed: int) -> int:
        return crc32(payload, crc32(COVERED.pack(entry_type, sequence, length), seed))

    unseeded = crc_from(0)
    # The bits that a seed changes in the result, each pair with a highest bit of its own.
    changes: list[tuple[int, int]] = []
    for bit in range(32):
        changes.append(_reduced(crc_from(1 << bit) ^ unseeded, 1 << bit, changes))
        changes.sort(reverse=True)
    unreached, seed = _reduced(unseeded ^ crc, 0, changes)
    assert not unreached, "each of the 32 bits of a seed changes the result in its own way"
    return seed


def _reduced(change: int, seed: int, changes: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Remove from a change all highest bits of others, in descending order; follow its seed."""
    for other, its_seed in changes:
        if change ^ other < change:
            change, seed = change ^ other, seed ^ its_seed
    return change, seed


def encode_entries(entries: Iterable[tuple[int, bytes]], first: int, seed: int) -> bytes:
    """Return entries, each given by its type and payload, with the numbers from ``first`` on.

    ``seed`` is the crc of the header of their segment.
    """
    parts, head, covered = list[bytes](), ENTRY.pack, COVERED.pack
    for sequence, (entry_type, payload) in enumerate(entries, first):
        length = len(payload)
        assert 1 <= length <= LARGEST_PAYLOAD
        crc = crc32(payload, crc32(covered(entry_type, sequence, length), seed))
        parts += (head(length, entry_type, sequence, crc), payload)
    return b"".join(parts)


def encode_entry(entry_type: int, sequence: int, payload: bytes, seed: int) -> bytes:
    """Return one entry, as ``encode_entries``."""
    return encode_entries([(entry_type, payload)], sequence, seed)
