"""The log records of one execution: in memory, or in a spool if the execution is long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from system.recording.executions.log_record import (
    LogRecord,
    StoredLogRecord,
    lines_of,
    log_records_in,
)
from system.recording.executions.spool import Extent, Spool

MOST_BYTES: Final = 1 << 20
"""The most bytes of log records that are kept in memory."""


class LogRecords(NamedTuple):
    """The log records of one moment: lines in ``runs`` of a spool, then ``lines`` in memory.

    Many of these values wait for a checkpoint. Their log records are kept as bytes, because each
    garbage collection would visit objects.
    """

    spool: Spool | None
    runs: tuple[Extent, ...]
    lines: bytes

    def pieces(self) -> Iterator[bytes]:
        """Yield the lines of all of them in pieces; raises ``OSError`` if some cannot be read."""
        yield from self._stored()
        yield self.lines

    def all(self) -> Iterator[LogRecord]:
        """Return all log records, in memory as a whole; raises as ``pieces``."""
        # Damage to the spool is found by the crc of an extent, before its lines are parsed.
        return log_records_in((b"".join(self.pieces()),))

    def _stored(self) -> Iterator[bytes]:
        for extent in self.runs:
            assert self.spool is not None
            yield from self.spool.read(extent)


class LogRecordList:
    """The log records that an execution has so far; ``recent`` are those in memory.

    An execution is long if ``make_spool`` is set and its log records have more than ``most_bytes``,
    or one of them is stored.
    """

    __slots__ = ("_recent_bytes", "_runs", "_spool", "make_spool", "most_bytes", "recent")

    def __init__(self, log_records: list[LogRecord]) -> None:
        self.recent = log_records
        self.make_spool: Callable[[], Spool] | None = None
        self.most_bytes = MOST_BYTES
        self._spool: Spool | None = None
        self._runs: tuple[Extent, ...] = ()
        self._recent_bytes = sum([len(log_record.encoded) for log_record in log_records])

    def now(self) -> LogRecords:
        """Return the log records as they are now; later ones do not change it."""
        return LogRecords(self._spool, self._runs, lines_of(self.recent))

    def append(self, log_record: LogRecord | StoredLogRecord) -> None:
        """Add the next log record."""
        if isinstance(log_record, StoredLogRecord):
            assert not self.recent, "store has moved them into the spool"
            self._runs = (*self._runs, *log_record.line_parts)
            return
        self.recent.append(log_record)
        self._recent_bytes += len(log_record.encoded)
        if self._recent_bytes > self.most_bytes and self.make_spool is not None:
            try:
                self._spill()
            except OSError:
                # They stay in memory, like all later ones.
                self.make_spool = None

    def store(self, entry_type: int, encoded: Iterable[bytes]) -> StoredLogRecord:
        """Write the next log record, of which the JSON comes in pieces, to the spool.

        Raises ``OSError``, and what ``encoded`` raises; then the log record is not stored.
        """
        self._spill()
        spool = self._opened()
        beginning = spool.write([LogRecord(entry_type, b"").line()[:-1]])
        extent = spool.write(encoded)
        return StoredLogRecord(entry_type, spool, extent, (beginning, extent, spool.write([b"\n"])))

    def close(self) -> None:
        """Release the spool."""
        if self._spool is not None:
            self._spool.close()

    def _spill(self) -> None:
        """Move the recent log records into the spool; raises ``OSError`` with nothing moved."""
        if self.recent:
            run = self._opened().write((lines_of(self.recent),))
            self._runs = (*self._runs, run)
            self.recent, self._recent_bytes = [], 0

    def _opened(self) -> Spool:
        if self._spool is None:
            assert self.make_spool is not None, "only executions with a spool store log records"
            self._spool = self.make_spool()
        return self._spool
