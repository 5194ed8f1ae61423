"""What an event log must contain, from the specification (S-01, S-06…S-09, S-52) alone.

The shadow knows each entry as acknowledged, in flight, or impossible. It never learns an
entry from the system: when a lifetime ends, each entry in flight is settled once, by the
first complete look at the recovered log, to "happened" or "did not". Both framings obey
the same shadow: how a line is framed is nobody's business but the log's.

An entry is any value that compares by equality; two entries of one log must differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from oracles.violation import (
    Duplicated,
    Invented,
    LostAck,
    Reordered,
    Resurrected,
    SilentEmpty,
    Violation,
)

E = TypeVar("E")


@dataclass(slots=True)
class Line(Generic[E]):
    """One entry, and whether the caller was told that it is durable."""

    entry: E
    acknowledged: bool


class ShadowLog(Generic[E]):
    """The specification of one event log, run beside it."""

    __slots__ = ("_lines", "_refused")

    def __init__(self) -> None:
        self._lines: list[Line[E]] = []
        self._refused: list[E] = []

    @property
    def acknowledged(self) -> list[E]:
        """The entries that must be there, in order."""
        return [line.entry for line in self._lines if line.acknowledged]

    @property
    def in_flight(self) -> list[E]:
        """The entries that may be there or not."""
        return [line.entry for line in self._lines if not line.acknowledged]

    def begin(self, entry: E) -> None:
        """An append was called; until it returns, the entry is in flight.

        An append that raises ``OSError`` leaves its entry in flight: it happened or not.
        """
        self._lines.append(Line(entry, acknowledged=False))

    def acknowledge(self) -> None:
        """The append that was begun last returned."""
        self._lines[-1].acknowledged = True

    def check(self, actual: Sequence[E]) -> None:
        """Compare with a look at the running log; raise a ``Violation``."""
        self._match(actual)

    def settle(self, actual: Sequence[E]) -> bool:
        """Compare with the first look after a recovery, and settle what was in flight.

        From here on an entry that was seen is acknowledged, and one that was not seen
        must never appear. Returns whether something in flight turned out to have happened;
        raises a ``Violation``.
        """
        self._match(actual)
        happened = len(actual) > len(self.acknowledged)
        if all(line.acknowledged for line in self._lines):
            return False
        present = list(actual)
        for line in self._lines:
            if line.entry in present:
                line.acknowledged = True
            else:
                self._refused.append(line.entry)
        self._lines = [line for line in self._lines if line.acknowledged]
        return happened

    def _match(self, actual: Sequence[E]) -> None:
        position = 0
        for line in self._lines:
            if position < len(actual) and actual[position] == line.entry:
                position += 1
            elif line.acknowledged:
                raise self._explain(actual)
        if position < len(actual):
            raise self._explain(actual)

    def _explain(self, actual: Sequence[E]) -> Violation:
        """Name the property that a log which does not match has broken."""
        known = [line.entry for line in self._lines]
        evidence = {
            "acknowledged": self.acknowledged,
            "in_flight": self.in_flight,
            "actual": list(actual),
        }
        for position, entry in enumerate(actual):
            if entry in self._refused:
                return Resurrected(
                    "an entry is back that an earlier look had shown to be absent",
                    entry=entry, **evidence,
                )  # fmt: skip
            if entry not in known:
                return Invented("an entry is there that nobody wrote", entry=entry, **evidence)
            if entry in actual[:position]:
                return Duplicated("an entry is there twice", entry=entry, **evidence)
        lost = [entry for entry in self.acknowledged if entry not in actual]
        if lost and not actual:
            return SilentEmpty("all entries are gone, and nothing says so", **evidence)
        if lost:
            return LostAck("an acknowledged entry is gone", entry=lost[0], **evidence)
        return Reordered("the entries are not in the order of their appends", **evidence)
