"""Entries of a segment that follow one another, verified in one pass (docs/file-formats.md).

``read_series`` decides whether an entry is valid, and makes no object of one: a log without
damage costs one loop. Where the loop ends, ``problem_at`` gives the reason, and ``find_series``
searches for the next valid entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

from system.recording.executions.entry_type import EntryType
from system.recording.executions.log_record import ID_END, ID_START, LogRecord, execution_of
from system.recording.wal.format import (
    COVERED,
    ENTRY,
    ENTRY_BYTES,
    LARGEST_PAYLOAD,
    SHORTEST_ENTRY,
    SHORTEST_LOG_RECORD,
    encode_entry,
    seed_of_entry,
)

_PART: Final = int(EntryType.PART)
_LOG_RECORDS: Final = frozenset(int(each) for each in EntryType if each is not EntryType.PART)
_POSSIBLE_START: Final = re.compile(
    rb"(?=[\0-%b]...[%b])" % (bytes([LARGEST_PAYLOAD >> 24]), re.escape(bytes(sorted(EntryType)))),
    re.DOTALL,
)
"""Five bytes that may be a length and a type."""
_DURABLE: Final = re.compile(rb'\{"durable":(\d{1,20}),')
_STARTS: Final = (b'{"m":', b'{"n":')
"""The first bytes of a log record without ``durable``."""
_ANY_START: Final = b'{"'


Span: TypeAlias = tuple[bytes, int]
"""Log records of one execution that follow one another: its id, and the offset of the first."""


class _Entry(NamedTuple):
    entry_type: int
    seq: int
    payload: bytes
    end: int

    @property
    def known_durable(self) -> int:
        """The last number known to be durable when this first entry of a log record was written.

        0 for a later piece of a payload, which does not say it; the first one may be lost.
        """
        if (found := _DURABLE.match(self.payload)) is not None:
            return min(int(found[1]), self.seq - 1)
        return self.seq - 1 if self.payload.startswith(_STARTS) else 0


@dataclass(frozen=True, slots=True)
class Series:
    """Valid entries without a gap, from the offset ``start`` of a segment to ``end``.

    Their numbers are those from ``seq`` to ``last``. A log record has one entry, or several if its
    payload is in pieces; the last piece may be missing at the end of the series.
    """

    content: bytes = field(repr=False)
    seq: int
    last: int
    start: int
    end: int
    spans: list[Span] = field(repr=False)

    @property
    def first_known_durable(self) -> int:
        """The last number known to be durable when the first entry was written."""
        return next(self._entries(self.start)).known_durable

    @property
    def known_durable(self) -> int:
        """The last number known to be durable when any of the entries was written."""
        known, is_first = 0, True
        for entry in self._entries(self.start):
            # Of the pieces of a payload only the first one says it.
            if is_first:
                known = max(known, entry.known_durable)
            is_first = entry.entry_type != _PART
        return known

    def spans_after(self, number: int) -> list[Span]:
        """Return the spans of all log records that have an entry with a larger number."""
        if number < self.seq:
            return self.spans
        begin = self.start
        for entry in self._entries(self.start):
            if entry.seq > number:
                break
            if entry.entry_type != _PART:
                begin = entry.end
        return [
            (owner, max(begin, start))
            for (owner, start), (_, end) in pairwise([*self.spans, (b"", self.end)])
            if end > begin
        ]

    def log_records(self, start: int) -> Iterator[LogRecord]:
        """Yield the log records from an offset on, their pieces joined."""
        pieces = list[bytes]()
        for entry in self._entries(start):
            pieces.append(entry.payload)
            if entry.entry_type != _PART:
                payload = b"".join(pieces)
                if (known := _DURABLE.match(payload)) is not None:
                    payload = b"{" + payload[known.end() :]
                yield LogRecord(entry.entry_type, payload)
                pieces.clear()

    def _entries(self, start: int) -> Iterator[_Entry]:
        while start < self.end:
            length, entry_type, sequence, _ = ENTRY.unpack_from(self.content, start)
            start += ENTRY_BYTES + length
            yield _Entry(entry_type, sequence, self.content[start - length : start], start)


def read_series(content: bytes, start: int, seed: int) -> Series | None:
    """Return the valid entries from an offset on, as far as each has the next number, or None.

    The first may have any number. ``seed`` is the crc of the header of the segment.
    """
    size_bytes = len(content)
    latest = size_bytes - SHORTEST_ENTRY
    if start > latest:
        return None
    first = number = _number_at(content, start)
    end, pieces_start = start, -1
    owner, spans = None, list[Span]()
    unpack, covered, log_records = ENTRY.unpack_from, COVERED.pack, _LOG_RECORDS
    for number in count(first):
        if end > latest:
            break
        length, entry_type, stated, crc = unpack(content, end)
        start_of_payload = end + ENTRY_BYTES
        following = start_of_payload + length
        payload = content[start_of_payload:following]
        if (
            stated != number
            or not 1 <= length <= LARGEST_PAYLOAD
            or following > size_bytes
            or crc != crc32(payload, crc32(covered(entry_type, number, length), seed))
        ):
            break
        if entry_type in log_records:
            found = payload[ID_START:ID_END]
            if found != owner:
                begin = end
                if pieces_start >= 0:
                    found, begin = _owner_of(content, pieces_start, following), pieces_start
                    pieces_start = -1
                owner = found
                spans.append((owner, begin))
        elif entry_type == _PART:
            # The log record of the pieces begins a span of its own.
            owner, pieces_start = None, end if pieces_start < 0 else pieces_start
        else:
            break
        end = following
    return Series(content, first, number - 1, start, end, spans) if end > start else None


def _owner_of(content: bytes, start: int, end: int) -> bytes:
    """Return the id of the execution of a log record in pieces; it may be in two of them."""
    (log_record,) = Series(content, 0, 0, start, end, []).log_records(start)
    return execution_of(log_record.encoded)


def _number_at(content: bytes, start: int) -> int:
    """Return the number that the entry at an offset states."""
    return int(ENTRY.unpack_from(content, start)[2])


def problem_at(content: bytes, start: int, seed: int, last: int | None) -> str:
    """Return the reason why no valid entry with a number above ``last`` begins at an offset."""
    if len(content) - start < ENTRY_BYTES:
        return "it is cut off"
    length, entry_type, sequence, crc = ENTRY.unpack_from(content, start)
    if not 1 <= length <= LARGEST_PAYLOAD:
        return f"its length is {length}"
    payload = content[start + ENTRY_BYTES : start + ENTRY_BYTES + length]
    if len(payload) < length:
        return "it is cut off"
    written = encode_entry(entry_type, sequence, payload, seed)
    _, _, _, actual = ENTRY.unpack_from(written)
    if actual != crc:
        return f"its crc is {crc:08x}, its bytes give {actual:08x}"
    if entry_type == _PART or entry_type in _LOG_RECORDS:
        return f"it has sequence={sequence} after {last}"
    return f"its type {entry_type} is unknown"


def find_seed(content: bytes, start: int, expected: int) -> int | None:
    """Return the seed of a segment that has lost its header, or None.

    Of two entries that follow one another, the first gives the seed, and the second confirms it.
    The first begins a log record, and its number is not below ``expected``.
    """
    for candidate in _POSSIBLE_START.finditer(content, start):
        offset = candidate.start()
        if offset > len(content) - SHORTEST_ENTRY:
            return None
        begins = content.startswith(_ANY_START, offset + ENTRY_BYTES)
        if begins and _number_at(content, offset) >= expected:
            seed = seed_of_entry(content, offset)
            found = None if seed is None else read_series(content, offset, seed)
            if found is not None and found.last > found.seq:
                return seed
    return None


def find_series(content: bytes, start: int, seed: int, last: int | None) -> Series | None:
    """Return the next valid entries after bad bytes that begin at ``start``, or None.

    ``last`` is the sequence number before the bad bytes, None if it is not known. The bad bytes
    have room for a limited number of entries; an entry with a larger number is out of place, and
    is not accepted, because the entries before it would be skipped.
    """
    for candidate in _POSSIBLE_START.finditer(content, start + 1):
        offset = candidate.start()
        if offset > len(content) - SHORTEST_ENTRY:
            return None
        number, room = _number_at(content, offset), 2 + (offset - start) // SHORTEST_LOG_RECORD
        if last is None or 0 < number - last <= room:
            found = read_series(content, offset, seed)
            if found is not None:
                return found
    return None
