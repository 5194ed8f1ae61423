"""One log record of one execution: its start, an event, or a reason why it cannot be replayed.

    {"n":2,"p":{...},"ts":"2026-...Z","x":"exec-..."}

``x`` is the execution, ``n`` the number of the event (0 for the start, the number of events so far
for a reason), ``p`` the payload. A final response has the reason ``m`` if the execution is not
replayable, so that damage to the log record of the reason cannot make it replayable. The JSON is
canonical, so ``p`` is found without a parse. Write-ahead log, packs and spools all hold log records
in this form; an entry of the log begins with ``durable`` as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from system.recording.executions.spool import Extent, Spool

_LOG_RECORD: Final = re.compile(
    rb'\{(?:"m":("(?:[^"\\]|\\.)*"),)?"n":(\d+),"p":(.*),"ts":"([^"]*)",'
    rb'"x":"(exec-[0-9a-f]{16})"\}'
)
_SHOWN: Final = 40
ID_END: Final = -len('"}')
ID_START: Final = ID_END - len("exec-0123456789abcdef")
"""Start and end of the id of the execution, from the end of the JSON of a log record."""


class LogRecord(NamedTuple):
    """A log record of the type ``entry_type``; ``encoded`` is its JSON."""

    entry_type: int
    encoded: bytes

    def pieces(self) -> Iterable[bytes]:
        """Return the JSON, in one piece; a stored log record has several."""
        return (self.encoded,)

    def line(self) -> bytes:
        """Return the log record as a line of a pack or a spool."""
        return lines_of((self,))

    def parsed(self) -> ParsedLogRecord | None:
        """Return the members, or None if it is not a log record."""
        found = _LOG_RECORD.fullmatch(self.encoded)
        if found is None:
            return None
        reason, number, payload, timestamp, execution_id = found.groups()
        return ParsedLogRecord(
            execution_id.decode(), int(number), payload, timestamp.decode(), reason
        )


class StoredLogRecord(NamedTuple):
    """A log record whose JSON is in a spool; ``line_parts`` are all parts of its line there."""

    entry_type: int
    spool: Spool
    extent: Extent
    line_parts: tuple[Extent, ...]

    def pieces(self) -> Iterator[bytes]:
        """Yield the JSON in pieces; raises ``OSError``."""
        return self.spool.read(self.extent)

    def whole(self) -> LogRecord:
        """Return the log record in memory; raises ``OSError``."""
        return LogRecord(self.entry_type, b"".join(self.pieces()))


class ParsedLogRecord(NamedTuple):
    """The members of a log record; ``payload`` and ``reason`` are canonical JSON."""

    execution_id: str
    number: int
    payload: bytes
    timestamp: str
    reason: bytes | None


def encoded_log_record(
    number: int, payload: bytes, end: bytes, reason: bytes | None = None
) -> bytes:
    """Return the JSON of a log record; ``payload`` and ``reason`` are canonical JSON.

    ``end`` is the result of ``end_of_log_record``.
    """
    if reason is None:
        return b'{"n":%d,"p":%b%b' % (number, payload, end)
    return b'{"m":%b,"n":%d,"p":%b%b' % (reason, number, payload, end)


def end_of_log_record(execution_id: str, timestamp: str) -> bytes:
    """Return the JSON behind the payload, which is the same in all log records of one moment."""
    return f',"ts":"{timestamp}","x":"{execution_id}"}}'.encode()


def execution_of(encoded: bytes) -> bytes:
    """Return the id of the execution of a log record, from the end of its JSON."""
    return encoded[ID_START:ID_END]


def lines_of(log_records: Iterable[LogRecord]) -> bytes:
    """Return the lines of log records."""
    return b"".join([b"%02d %b\n" % log_record for log_record in log_records])


def log_records_in(pieces: Iterable[bytes]) -> Iterator[LogRecord]:
    """Yield the log records of lines that come in pieces; ``ValueError`` for other bytes."""
    unended = list[bytes]()
    for piece in pieces:
        lines = piece.split(b"\n")
        unended.append(lines[0])
        for line in lines[1:]:
            yield _log_record_of(b"".join(unended))
            unended = [line]
    if any(unended):
        raise ValueError("the last line has no end")


def _log_record_of(line: bytes) -> LogRecord:
    if line[2:3] != b" ":
        raise ValueError(f"a line is not a log record: {line[:_SHOWN]!r}")
    return LogRecord(int(line[:2]), line[3:])
