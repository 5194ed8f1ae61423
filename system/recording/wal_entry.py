"""The payload of an entry: canonical JSON of one fact of one execution.

    {"durable":7,"n":2,"p":{...},"ts":"2026-...Z","x":"exec-..."}

``x`` is the execution, ``n`` the number of the event (0 for the start), ``p`` the payload. A
final response has the reason ``m`` if the execution is not replayable, so that damage to the
entry of the reason cannot make it replayable.
``durable`` is the last sequence number that was known to be durable, left out if it is the one
before. Members are sorted, so ``p`` is found without a parse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from system.recording.event_list import StoredJson
from system.recording.spool import PIECE_BYTES, chunks
from system.recording.wal_format import EntryType, RawEntry

_PAYLOAD: Final = re.compile(
    rb'\{(?:"durable":\d+,)?(?:"m":("(?:[^"\\]|\\.)*"),)?"n":(\d+),"p":(.*),"ts":"([^"]*)",'
    rb'"x":"(exec-[0-9a-f]{16})"\}'
)


class LogEntry(NamedTuple):
    """One fact of an execution, as recovery reads it; ``sequence`` is that of its last piece.

    ``reason`` is canonical JSON, or None.
    """

    entry_type: int
    sequence: int
    execution_id: str
    number: int
    payload: bytes
    timestamp: str
    reason: bytes | None = None


class NewEntry(NamedTuple):
    """One fact of an execution, to be appended; ``payload`` and ``reason`` are canonical JSON."""

    entry_type: int
    execution_id: str
    number: int
    payload: bytes | StoredJson
    timestamp: str
    reason: bytes | None = None


def payload_pieces(entry: NewEntry, durable: int | None) -> Iterable[bytes]:
    """Return an entry's payload in pieces; ``durable`` is None if it is the entry before."""
    known = b"" if durable is None else b'"durable":%d,' % durable
    marked = b"" if entry.reason is None else b'"m":%s,' % entry.reason
    head = b'{%s%s"n":%d,"p":' % (known, marked, entry.number)
    tail = b',"ts":"%s","x":"%s"}' % (entry.timestamp.encode(), entry.execution_id.encode())
    payload = entry.payload
    if isinstance(payload, bytes) and len(payload) <= PIECE_BYTES:
        return (head + payload + tail,)
    pieces = (payload,) if isinstance(payload, bytes) else payload.pieces()
    return chunks(chain((head,), pieces, (tail,)), PIECE_BYTES)


def entries_of(raw: Iterator[RawEntry]) -> Iterator[LogEntry]:
    """Yield the facts of a log, pieces joined; pieces whose beginning is missing are left out."""
    parts: list[RawEntry] = []
    for piece in raw:
        if parts and piece.seq != parts[-1].seq + 1:
            parts.clear()
        if piece.entry_type == EntryType.PART:
            parts.append(piece)
            continue
        whole = b"".join([*(part.payload for part in parts), piece.payload])
        parts.clear()
        found = _PAYLOAD.fullmatch(whole)
        if found is not None:
            reason, number, payload, timestamp, execution_id = found.groups()
            yield LogEntry(
                piece.entry_type, piece.seq, execution_id.decode(), int(number), payload,
                timestamp.decode(), reason,
            )  # fmt: skip
