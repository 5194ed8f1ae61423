"""Packs of executions by their format.

It is written from the format and shares no code with the system::

pack    = member*  table  trailer
member  = gzip of lines, one for each log record: two digits for its type, a space, its JSON
table   = (id:8  hash:8  start:8  size:8  digest:16)*         by id, ascending
trailer = table_bytes:8  table_crc:4  "SYREC"  version:1 (= 1)  crc:4
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from hashlib import sha256
from struct import Struct
from typing import Any, Final
from zlib import MAX_WBITS, crc32, decompress

from oracles.recording.canonical import canonical, envelope_hash
from oracles.recording.record_reader import FINAL, ObservedEvent, ObservedRecord
from oracles.recording.violations import BrokenRecord

_ROW: Final = Struct(">8s8sQQ16s")
_TRAILER: Final = Struct(">QI5sBI")
_START: Final = 16
_MARK: Final = 17
_EVENTS: Final = {
    1: "INTENT_RECEIVED",
    2: "AGENT_ATTEMPT_START",
    3: "AGENT_ATTEMPT_END",
    4: "FALLBACK_TRIGGERED",
    5: "ROUTER_DECISION",
    6: FINAL,
}
_INCOMPLETE: Final = "execution_incomplete"
_LOST: Final = "recording_failure"
_CORRUPTED: Final = "record_corrupted"


def read_pack(name: str, data: bytes, damaged: Container[str] = ()) -> dict[str, ObservedRecord]:
    """Return the records of a pack by id, without those of ``damaged`` that have a wrong digest.

    ``BrokenRecord`` if it is not a sound pack.
    """
    return dict(_records(name, data, damaged))


def members_of(data: bytes) -> dict[str, bytes]:
    """Return the compressed members of a sound pack, by id."""
    rows = _rows("", data)
    return {f"exec-{key.hex()}": data[start : start + size] for key, _, start, size, _ in rows}


def with_member(data: bytes, execution_id: str, member: bytes) -> bytes:
    """Return the pack with one member replaced, with correct positions and the old digests."""
    content, rows = b"", list[tuple[bytes, bytes, int, int, bytes]]()
    for key, hashed, start, size, digest in sorted(_rows("", data), key=lambda row: row[2]):
        is_replaced = f"exec-{key.hex()}" == execution_id
        kept = member if is_replaced else data[start : start + size]
        rows.append((key, hashed, len(content), len(kept), digest))
        content += kept
    table = b"".join(_ROW.pack(*row) for row in sorted(rows))
    trailer = _TRAILER.pack(len(table), crc32(table), b"SYREC", 1, 0)[:-4]
    return content + table + trailer + crc32(trailer).to_bytes(4, "big")


def _records(
    name: str, data: bytes, damaged: Container[str]
) -> Iterator[tuple[str, ObservedRecord]]:
    last = b""
    end = 0
    for key, hashed, start, size, digest in _rows(name, data):
        execution_id = f"exec-{key.hex()}"
        end += size
        member = data[start : start + size]
        is_sound = sha256(member).digest()[:16] == digest
        if not is_sound and execution_id in damaged:
            continue
        if key <= last or not is_sound:
            raise BrokenRecord("a row of a pack is wrong", name=name, execution_id=execution_id)
        record = _record(execution_id, decompress(member, MAX_WBITS | 16))
        if bytes.fromhex(envelope_hash(json.loads(record.envelope))[7:23]) != hashed:
            raise BrokenRecord("a pack has another hash of an envelope", record=record)
        yield execution_id, record
        last = key
    if end + _ROW.size * len(list(_rows(name, data))) + _TRAILER.size != len(data):
        raise BrokenRecord("a pack has other bytes", name=name)


def _rows(name: str, data: bytes) -> Iterator[tuple[bytes, bytes, int, int, bytes]]:
    if len(data) < _TRAILER.size:
        raise BrokenRecord("a pack has no trailer", name=name)
    size, table_crc, magic, version, crc = _TRAILER.unpack(data[-_TRAILER.size :])
    table = data[-_TRAILER.size - size : -_TRAILER.size]
    if (magic, version, crc) != (b"SYREC", 1, crc32(data[-_TRAILER.size : -4])):
        raise BrokenRecord("the trailer of a pack is wrong", name=name)
    if crc32(table) != table_crc:
        raise BrokenRecord("the table of a pack is wrong", name=name)
    return _ROW.iter_unpack(table)


def _record(execution_id: str, lines: bytes) -> ObservedRecord:
    """Return the record of an execution from the lines of its log records."""
    log_records = [(int(line[:2]), json.loads(line[3:])) for line in lines.splitlines()]
    if not log_records or log_records[0][0] != _START:
        raise BrokenRecord("an execution has no start", execution_id=execution_id)
    start: dict[str, Any] = log_records[0][1]["p"]
    events: list[ObservedEvent] = []
    reason: str | None = _INCOMPLETE
    for entry_type, log_record in log_records[1:]:
        if log_record["x"] != execution_id:
            raise BrokenRecord("a log record is of another execution", execution_id=execution_id)
        if entry_type == _MARK:
            reason = _marked(reason, log_record["p"])
        elif not events or events[-1].type != FINAL:
            reason = _marked(reason, log_record["m"]) if "m" in log_record else reason
            number = events[-1].seq + 1 if events else 1
            if log_record["n"] < number:
                continue
            if log_record["n"] > number and reason != _LOST:
                number, reason = log_record["n"], _CORRUPTED
            events.append(ObservedEvent(number, _EVENTS[entry_type], canonical(log_record["p"])))
            if entry_type == 6 and reason == _INCOMPLETE:
                reason = None
    response = events[-1].payload if events and events[-1].type == FINAL else None
    header = start["header"]
    if header["executionId"] != execution_id:
        raise BrokenRecord("an execution has the start of another", execution_id=execution_id)
    return ObservedRecord(
        execution_id, canonical(start["envelope"]), header.get("sideEffectClass"),
        tuple(events), response, reason, None,
    )  # fmt: skip


def _marked(reason: str | None, mark: str) -> str:
    """Return the reason after a mark, which does not replace a loss of events or damage."""
    return reason if reason in {_LOST, _CORRUPTED} else mark
