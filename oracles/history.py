"""The history of a workload: the values that it attempted and those that it acknowledged.

A crash cuts a history at one operation of the disk. Every value acknowledged by then must have
survived, a value in flight may have survived, and later values cannot exist.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple


class HistoryEntry(NamedTuple):
    """One value; ``after`` is the number of disk operations that preceded it.

    ``place`` is the line of the workload that made the entry, or None if it is not known.
    """

    after: int
    acknowledged: bool
    value: object
    place: object = None


@dataclass(frozen=True, slots=True)
class Known:
    """The values that must, and those that may, be found after a crash, oldest first."""

    acknowledged: tuple[object, ...]
    in_flight: tuple[object, ...]


class History:
    """Records the progress of a workload; call it with a value to acknowledge that value.

    ``operations`` returns the number of disk operations so far, ``place`` the line of the
    workload that is running. ``entries`` are those of a history that was recorded earlier.
    """

    def __init__(
        self,
        operations: Callable[[], int],
        place: Callable[[], object] = lambda: None,
        entries: Iterable[HistoryEntry] = (),
    ) -> None:
        self._operations = operations
        self._place = place
        self.entries: list[HistoryEntry] = list(entries)
        self._last_known: tuple[int, Known] = (-1, Known((), ()))

    def attempt(self, value: object) -> None:
        """Allow ``value`` to be found from here on, without requiring it."""
        self.entries.append(HistoryEntry(self._operations(), False, value, self._place()))

    def __call__(self, value: object) -> None:
        """Require ``value`` to be found from here on: it is acknowledged."""
        self.entries.append(HistoryEntry(self._operations(), True, value, self._place()))

    def entries_by(self, operation: int, *, returned: bool) -> int:
        """Return the number of entries made before a crash at this operation.

        With ``returned`` the crash comes after the operation returned to its caller, which
        ran on until its next operation.
        """
        last = operation if returned else operation - 1
        return bisect_right(self.entries, last, key=lambda entry: entry.after)

    def known(self, count: int) -> Known:
        """Return the values required and allowed by a crash after the first ``count`` entries.

        An acknowledgement settles all attempts before it. The value of the following entry is
        in flight as well, because its operations may have begun.
        """
        if self._last_known[0] != count:
            self._last_known = count, self._known(count)
        return self._last_known[1]

    def _known(self, count: int) -> Known:
        acknowledged: list[object] = []
        in_flight: list[object] = []
        for entry in self.entries[:count]:
            if entry.acknowledged:
                acknowledged.append(entry.value)
                in_flight.clear()
            else:
                in_flight.append(entry.value)
        in_flight += [entry.value for entry in self.entries[count : count + 1]]
        return Known(tuple(acknowledged), tuple(in_flight))
