"""The logical clock of one execution: it numbers the events."""

from __future__ import annotations

from threading import Lock


class DeterministicClock:
    """Counts from 1; calls may come from any thread (rules I-10, I-11)."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last = 0

    def next(self) -> int:
        """Return the next number."""
        with self._lock:
            self._last += 1
            return self._last

    def current(self) -> int:
        """Return the last number, or 0 before the first."""
        return self._last
