"""One line of an event log: its members and its encoding.

    {"data":{...},"event":"turn.start","seq":41,"session_id":"9f...","ts":"2026-...Z","v":1,
     "crc":"9f3a11c2"}

without the break, and with one line end after it. Keys are sorted, and ``crc`` comes last
(see ``codec.py``). ``seq`` counts the lines of a log from 1.

``durable`` is the ``seq`` of the last line that was known to be durable when this one was
written. It is omitted if that is the line before. It follows ``data``, so that all lines begin
with the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import itemgetter
from typing import Final, NamedTuple

from system.errors import BadSeal, LineTooLarge, NewerFormat
from system.ports import Json, JsonObject
from system.storage.codec import seal, unseal

VERSION: Final = 1
LARGEST_BYTES: Final = 16 << 20

_members_of: Final = itemgetter("v", "seq", "ts", "event", "data", "session_id")
_TYPES: Final = (int, int, str, str, dict)
# Not counting ``durable``, which is optional.
_MEMBERS: Final = 6
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Line(NamedTuple):
    """One event of a session; ``ts`` is ISO 8601 in UTC, for people only.

    ``durable`` is set only when it is below ``seq - 1``; ``known_durable`` is always defined.
    """

    seq: int
    ts: str
    session_id: str
    event: str
    data: JsonObject
    durable: int | None = None

    @property
    def known_durable(self) -> int:
        """The ``seq`` of the last line known to be durable when this one was written."""
        return self.seq - 1 if self.durable is None else self.durable


FIRST_BYTES: Final = b'{"data":{'
"""The first bytes of every line."""

SHORTEST_BYTES: Final = len(
    seal({"data": {}, "event": "", "seq": 1, "session_id": "", "ts": "", "v": VERSION}) + b"\n"
)
"""The length of the shortest possible line, with its line end."""


def encode_line(line: Line, path: str) -> bytes:
    """Return the bytes of a line, line end included.

    Raises ``NotPlainJson`` or ``LineTooLarge``, which name ``path``.
    """
    members: JsonObject = {
        "data": line.data,
        "event": line.event,
        "seq": line.seq,
        "session_id": line.session_id,
        "ts": line.ts,
        "v": VERSION,
    }
    if line.durable is not None:
        members["durable"] = line.durable
    encoded = seal(members) + b"\n"
    if len(encoded) > LARGEST_BYTES:
        raise LineTooLarge(
            path, f"a line of size_bytes={len(encoded)} is over the limit of {LARGEST_BYTES}"
        )
    return encoded


def encode_lines(
    path: str,
    session_id: str,
    wall_ns: int,
    last_seq: int,
    durable_seq: int,
    events: Sequence[tuple[str, JsonObject]],
) -> tuple[list[Line], bytes]:
    """Return the lines of ``events``, and their bytes; raises as ``encode_line``.

    They follow the line ``last_seq`` and are written at ``wall_ns``, when the line
    ``durable_seq`` and all earlier ones were durable.
    """
    assert events
    ts = timestamp(wall_ns)
    lines = []
    for seq, (event, data) in enumerate(events, last_seq + 1):
        durable = None if durable_seq == seq - 1 else durable_seq
        lines.append(Line(seq, ts, session_id, event, data, durable))
    return lines, b"".join([encode_line(line, path) for line in lines])


def decode_line(encoded: bytes, session_id: str, path: str) -> Line:
    """Decode a line from its bytes without the line end.

    Raises ``BadSeal`` for anything but a line of this session, and ``NewerFormat``, which
    names ``path``.
    """
    members = unseal(encoded)
    try:
        # A `match` statement would be shorter, and would double the time of a recovery.
        version, seq, ts, event, data, owner = found = _members_of(members)
    except KeyError:
        raise _no_line(members, path) from None
    has_durable = "durable" in members
    if (
        tuple(map(type, found[:-1])) != _TYPES
        or version != VERSION
        or len(members) != _MEMBERS + has_durable
    ):
        raise _no_line(members, path)
    durable = _durable(members["durable"], seq) if has_durable else None
    if owner != session_id:
        raise BadSeal(f"it belongs to session_id={owner!r}")
    # A recovery makes many lines, and the constructor of a named tuple is a call of Python.
    return tuple.__new__(Line, (seq, ts, session_id, event, data, durable))


def _no_line(members: JsonObject, path: str) -> BadSeal | NewerFormat:
    """Return the error for members that are not those of a line."""
    version = members.get("v")
    if isinstance(version, int) and version > VERSION:
        return NewerFormat(path, f"it has lines of format v={version}, known is v={VERSION}")
    return BadSeal("it is sealed, but it is not a line of a log")


def _durable(value: Json, seq: int) -> int:
    if isinstance(value, int) and 0 <= value < seq - 1:
        return value
    raise BadSeal("it is sealed, but its members are not those of a line")


def timestamp(wall_ns: int) -> str:
    """Return a wall-clock time (nanoseconds since 1970) as ISO 8601 in UTC, microseconds."""
    seconds, microseconds = divmod(wall_ns // 1000, 1_000_000)
    return f"{_second(seconds)}.{str(microseconds).zfill(6)}Z"


@lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}"
