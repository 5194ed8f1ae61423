"""The log records of a write-ahead log, grouped by their executions without a parse."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from system.recording.executions.log_record import LogRecord, execution_of
from system.recording.wal.series import Series


class LogRecordIndex:
    """The log records of executions: those of a snapshot, then those of entries."""

    def __init__(self) -> None:
        self._snapshots: dict[bytes, list[LogRecord]] = {}
        # The places at which log records of an execution begin to follow one another. A place is an
        # offset in the bytes of all series, one behind the other.
        self._places: dict[bytes, list[int]] = {}
        self._series: list[Series] = []
        self._bases: list[int] = []
        self._size_bytes = 0

    def resume(self, execution_id: str, log_records: list[LogRecord]) -> None:
        """Set the log records of an execution in a snapshot."""
        self._snapshots[execution_id.encode()] = log_records

    def add(self, series: Series, after: int) -> None:
        """Add the log records of entries whose sequence number is above ``after``."""
        places, base = self._places, self._size_bytes
        for owner, start in series.spans_after(after):
            if owner in places:
                places[owner].append(base + start)
            else:
                places[owner] = [base + start]
        self._series.append(series)
        self._bases.append(base)
        self._size_bytes += series.end

    def ids(self) -> Iterator[str]:
        """Yield the ids of the executions, in the order of their first log records."""
        for owner in {**self._snapshots, **self._places}:
            yield owner.decode("ascii", "replace")

    def of(self, execution_id: str) -> Iterator[LogRecord]:
        """Yield the log records of an execution in their order."""
        owner = execution_id.encode()
        yield from self._snapshots.get(owner, ())
        for place in self._places.get(owner, ()):
            number = bisect_right(self._bases, place) - 1
            for log_record in self._series[number].log_records(place - self._bases[number]):
                if execution_of(log_record.encoded) != owner:
                    break
                yield log_record
