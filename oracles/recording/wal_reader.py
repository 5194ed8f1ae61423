"""The write-ahead log by its format: segments, headers, entries.

It is written from the format (docs/file-formats.md, The write-ahead log) and shares no code with
the system::

    header = "SYWAL" version:1 first:8 salt:8 crc32:4
    entry  = length:4 type:1 sequence:8 crc32:4 payload
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from oracles.recording.violations import BrokenLog

MAGIC: Final = b"SYWAL\x01"
HEADER_BYTES: Final = 26
ENTRY_BYTES: Final = 17
PART: Final = 18

_NUMBERS: Final = Struct(">QQ")
_CRC: Final = Struct(">I")
_ENTRY: Final = Struct(">IBQI")
_COVERED: Final = Struct(">BQI")
_TYPES: Final = frozenset((1, 2, 3, 4, 5, 6, 16, 17, PART))


class WalEntry(NamedTuple):
    """One whole entry, and its place in a segment, from byte ``start`` to ``end``."""

    entry_type: int
    sequence: int
    payload: bytes
    start: int
    end: int


class WalSegment(NamedTuple):
    """The valid entries at the beginning of a segment; ``end`` is the offset after them.

    ``first`` is the number of the first entry, from the header.
    """

    first: int
    entries: tuple[WalEntry, ...]
    end: int


class ParsedLogRecord(NamedTuple):
    """The content of an entry; ``durable`` is None if the entry does not name it."""

    execution_id: str
    number: int
    payload: object
    durable: int | None


def read_segment(content: bytes) -> WalSegment | None:
    """Return the valid beginning of a segment; None if its header is not valid."""
    if len(content) < HEADER_BYTES or not content.startswith(MAGIC):
        return None
    (seed,) = _CRC.unpack_from(content, HEADER_BYTES - 4)
    if crc32(content[: HEADER_BYTES - 4]) != seed:
        return None
    first, _salt = _NUMBERS.unpack_from(content, len(MAGIC))
    entries = tuple(_entries(content, first, seed))
    return WalSegment(first, entries, entries[-1].end if entries else HEADER_BYTES)


def _entries(content: bytes, first: int, seed: int) -> Iterator[WalEntry]:
    start, expected = HEADER_BYTES, first
    while start + ENTRY_BYTES < len(content):
        length, entry_type, sequence, crc = _ENTRY.unpack_from(content, start)
        end = start + ENTRY_BYTES + length
        payload = content[start + ENTRY_BYTES : end]
        covered = _COVERED.pack(entry_type, sequence, length) + payload
        if not length or end > len(content) or sequence != expected:
            return
        if crc32(covered, seed) != crc:
            return
        yield WalEntry(entry_type, sequence, payload, start, end)
        start, expected = end, sequence + 1


def log_record_of(entry: WalEntry) -> ParsedLogRecord:
    """Return the content of an entry that is not of type ``PART``."""
    members = json.loads(entry.payload)
    return ParsedLogRecord(members["x"], members["n"], members["p"], members.get("durable"))


def check_segment(path: str, content: bytes, above: int) -> int:
    """Check a segment that a healthy system is writing; return its last sequence number.

    Its numbers lie above ``above``, the last one of earlier segments. Raises ``BrokenLog``.
    """
    segment = read_segment(content)
    if segment is None or segment.end != len(content):
        raise BrokenLog(
            "a segment is not whole", path=path, size=len(content),
            whole=0 if segment is None else segment.end,
        )  # fmt: skip
    if segment.first <= above:
        raise BrokenLog(
            "a segment begins with a number of an earlier one",
            path=path, above=above, first=segment.first,
        )  # fmt: skip
    for entry in segment.entries:
        if entry.entry_type not in _TYPES:
            raise BrokenLog("an entry has an unknown type", path=path, entry=entry)
        if entry.entry_type != PART:
            log_record = log_record_of(entry)
            if log_record.durable is not None and log_record.durable >= entry.sequence:
                raise BrokenLog("an entry names itself as durable", path=path, entry=entry)
    return segment.entries[-1].sequence if segment.entries else segment.first - 1
