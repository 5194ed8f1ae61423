"""Reads the lines of a log from bytes, independently of the code that writes them.

A line is an object in canonical JSON with ``v``, ``seq``, ``ts``, ``session_id``, ``event``,
``data``, optionally ``durable``, and last ``crc``: the CRC-32 of the canonical bytes without
that member. ``seq`` counts from 1 without a gap. ``durable`` is the ``seq`` of the last line
that was durable when this one was written; it defaults to the line before.

Reading never raises. Bytes that are not a line are kept in ``unparsed`` with a reason, because
a crash image may end in anything; the laws reject them in a recovered log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from zlib import crc32

_SEAL: Final = b',"crc":"'
_SEAL_BYTES: Final = len(_SEAL) + 8 + len(b'"}')
_MEMBERS: Final = frozenset(("v", "seq", "ts", "session_id", "event", "data"))


class LogLine(NamedTuple):
    """One line; ``raw`` are its bytes without the line end, ``ts`` is an ISO time in UTC."""

    seq: int
    durable: int
    session_id: str
    event: str
    data: Mapping[str, Any]
    raw: bytes
    ts: str = ""


class ParsedLog(NamedTuple):
    """The lines of a log; ``reason`` says why ``unparsed`` does not begin with a line."""

    raw: bytes = b""
    lines: tuple[LogLine, ...] = ()
    unparsed: bytes = b""
    reason: str = ""


def unsealed(sealed: bytes) -> dict[str, Any] | str:
    """Return the object in one sealed line without its ``crc``, or the reason why it is invalid."""
    if sealed[-_SEAL_BYTES:-10] != _SEAL or sealed[-2:] != b'"}':
        return "it does not end with a crc"
    if b"%08x" % crc32(b"}", crc32(sealed[:-_SEAL_BYTES])) != sealed[-10:-2]:
        return "its crc is wrong"
    try:
        members = json.loads(sealed.decode("ascii"))
    except (ValueError, RecursionError) as error:
        return f"it is not JSON in ASCII: {error}"
    if not isinstance(members, dict):
        return "it is not a JSON object"
    del members["crc"]
    return members


def read_line(raw: bytes) -> LogLine | str:
    """Return the line in these bytes, or the reason why they are not one."""
    members = unsealed(raw)
    if isinstance(members, str):
        return members
    if members.keys() - {"durable"} != _MEMBERS:
        return f"its members are {sorted(members)}"
    seq, data, event, ts = members["seq"], members["data"], members["event"], members["ts"]
    durable = members.get("durable", seq - 1 if isinstance(seq, int) else None)
    if (
        members["v"] != 1
        or type(seq) is not int
        or type(durable) is not int
        or not isinstance(data, dict)
        or not isinstance(event, str)
        or not isinstance(ts, str)
    ):
        return "its members have wrong types"
    return LogLine(seq, durable, members["session_id"], event, data, raw, ts)


def read_log(raw: bytes, before: ParsedLog | None = None) -> ParsedLog:
    """Return the lines in the bytes of a log.

    ``before`` is an earlier result for the same log; its unchanged lines are not parsed again.
    """
    lines, begin = _unchanged(raw, before) if before else ([], 0)
    while begin < len(raw):
        end = raw.find(b"\n", begin)
        if end < 0:
            return ParsedLog(raw, tuple(lines), raw[begin:], "it has no line end")
        line = read_line(raw[begin:end])
        reason = line if isinstance(line, str) else _misplaced(line, lines)
        if reason or isinstance(line, str):
            return ParsedLog(raw, tuple(lines), raw[begin:], reason)
        lines.append(line)
        begin = end + 1
    return ParsedLog(raw, tuple(lines))


def _unchanged(raw: bytes, before: ParsedLog) -> tuple[list[LogLine], int]:
    """Return the lines of ``before`` with which these bytes begin, and the offset of their end."""
    if not before.unparsed and raw.startswith(before.raw):
        return list(before.lines), len(before.raw)
    same: list[LogLine] = []
    begin = 0
    for line in before.lines:
        if not raw.startswith(line.raw + b"\n", begin):
            break
        same.append(line)
        begin += len(line.raw) + 1
    return same, begin


def _misplaced(line: LogLine, lines: list[LogLine]) -> str:
    """Return the reason why this line cannot follow those, or an empty text."""
    if line.seq != len(lines) + 1:
        return f"its seq is {line.seq} instead of {len(lines) + 1}"
    if not 0 <= line.durable < line.seq or (lines and line.durable < lines[-1].durable):
        return f"its durable is {line.durable}"
    if lines and line.session_id != lines[0].session_id:
        return f"its session_id is {line.session_id!r} instead of {lines[0].session_id!r}"
    return ""
