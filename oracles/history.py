"""What a workload said about its own progress: what it began, and what it was told is safe.

A crash cuts a history at one operation of the disk. What was acknowledged by then must be
there; what was in flight may be there or not; everything later is impossible.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


class Entry(NamedTuple):
    """``after``: how many operations of the disk had been done when it was said."""

    after: int
    acknowledged: bool
    value: object


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a history at a crash, each in the order in which it was said."""

    acknowledged: tuple[object, ...]
    in_flight: tuple[object, ...]


class History:
    """Filled by a workload while it runs: call it to acknowledge a value.

    ``operations`` says how many operations of the disk have been done.
    """

    def __init__(self, operations: Callable[[], int]) -> None:
        self._operations = operations
        self.entries: list[Entry] = []
        self._last_known: tuple[int, Known] = (-1, Known((), ()))

    def attempt(self, value: object) -> None:
        """Say that ``value`` may be seen from here on; nobody was promised anything."""
        self.entries.append(Entry(self._operations(), False, value))

    def __call__(self, value: object) -> None:
        """Acknowledge: say that ``value`` must be seen from here on."""
        self.entries.append(Entry(self._operations(), True, value))

    def said_by(self, operation: int, *, returned: bool) -> int:
        """Return how many entries there are at a crash at this operation.

        ``returned``: the operation returned to its caller, who went on as far as the next.
        """
        last = operation if returned else operation - 1
        return bisect_right(self.entries, last, key=lambda entry: entry.after)

    def known(self, said: int) -> Known:
        """Return what a crash after the first ``said`` entries must and may leave.

        An acknowledgement settles all attempts before it. The one that would have come
        next is in flight too: its operations may be under way.
        """
        if self._last_known[0] != said:
            self._last_known = said, self._known(said)
        return self._last_known[1]

    def _known(self, said: int) -> Known:
        acknowledged: list[object] = []
        in_flight: list[object] = []
        for entry in self.entries[:said]:
            if entry.acknowledged:
                acknowledged.append(entry.value)
                in_flight.clear()
            else:
                in_flight.append(entry.value)
        in_flight += [entry.value for entry in self.entries[said : said + 1]]
        return Known(tuple(acknowledged), tuple(in_flight))
