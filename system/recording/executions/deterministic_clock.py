"""The logical clock of one execution: it numbers the events (docs/file-formats.md, Log records)."""

from __future__ import annotations

from threading import Lock


class DeterministicClock:
    """Counts from 1, or from the number after ``last``; calls may come from any thread."""

    def __init__(self, last: int = 0) -> None:
        self._lock = Lock()
        self._last = last

    def next(self) -> int:
        """Return the next number."""
        with self._lock:
            self._last += 1
            return self._last

    def current(self) -> int:
        """Return the last number, or 0 before the first."""
        return self._last
