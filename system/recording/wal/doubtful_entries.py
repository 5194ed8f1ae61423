"""The entries of a write-ahead log that may be lost after a failed write or barrier."""

from __future__ import annotations

from typing import NamedTuple

from system.errors import StorageError, raise_if_full
from system.recording.records.errors import BarrierFailed


class _Doubt(NamedTuple):
    """The numbers of entries that may be lost, and the reason.

    ``are_written`` is false if the disk has refused all of them; then they are certainly lost.
    """

    numbers: range
    error: Exception
    are_written: bool


class DoubtfulEntries:
    """The numbers of the entries that may be lost; a number is in it if its entry may be.

    ``last`` is the last of them, or 0. Every entry up to ``last`` is durable or in it.
    """

    def __init__(self) -> None:
        self.last = 0
        self._doubts: list[_Doubt] = []

    def __contains__(self, sequence: int) -> bool:
        return sequence <= self.last and any(sequence in each.numbers for each in self._doubts)

    def add(self, numbers: range, error: Exception, *, are_written: bool) -> None:
        """Put entries in doubt because of an error: all that are not durable.

        ``are_written`` is false if the disk has refused all of them; then they are certainly lost.
        """
        self._doubts.append(_Doubt(numbers, error, are_written))
        self.last = max(self.last, numbers.stop - 1)

    def check(self, sequence: int, path: str) -> None:
        """Raise ``StorageFull`` or ``BarrierFailed``, with ``path``, if an entry may be lost."""
        for numbers, error, are_written in self._doubts:
            if sequence in numbers:
                if not are_written:
                    raise_if_full(path, error)
                reason = error.reason if isinstance(error, StorageError) else error
                raise BarrierFailed(path, f"entry {sequence} may be lost ({reason})")
