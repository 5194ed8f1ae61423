"""The specification of an append-only event log.

An entry is acknowledged, unsynced, in flight or impossible. An append acknowledges its own
entries and all unsynced ones before them when it returns. An entry appended without fsync
survives a kill; a power cut may take it. Of the entries that are not acknowledged a crash
leaves a prefix. A refused call leaves none of its entries.

The shadow never learns an entry from the system. At the first complete read after a crash
each entry that is not acknowledged is decided once: it survived, or it must never appear.
The framing of the lines does not matter here: the same shadow serves every framing.

An entry is any value with equality; two entries of one log must differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Generic, TypeVar

from oracles.violation import (
    Duplicated,
    LogGap,
    LostAck,
    Phantom,
    Reordered,
    Resurrected,
    SilentEmpty,
    Violation,
)

E = TypeVar("E")


class Excused(Enum):
    """The acknowledged entries that a recovery may miss because a fault damaged the disk."""

    NONE = auto()
    LAST = auto()
    """The last ones, with no others after them."""
    ANY = auto()


class ShadowLog(Generic[E]):
    """The specification of one event log, run beside it.

    A read must show the ``acknowledged`` entries, then the ``unsynced`` ones unless a power
    cut took them, then any prefix of those ``in_flight``.
    """

    __slots__ = ("_begun", "_misplaced", "_refused", "acknowledged", "in_flight", "unsynced")

    def __init__(self) -> None:
        self.acknowledged: list[E] = []
        self.unsynced: list[E] = []
        self.in_flight: list[E] = []
        self._begun = 0
        self._refused: list[E] = []
        self._misplaced: list[E] = []

    @property
    def settled(self) -> bool:
        """Whether every entry is acknowledged or impossible."""
        return not (self.unsynced or self.in_flight)

    def begin(self, *entries: E) -> None:
        """Record that an append of these entries was called, with or without fsync."""
        self._begun = len(entries)
        self.in_flight += entries

    def acknowledge(self) -> None:
        """Record that the append begun last returned."""
        self.acknowledged += self.unsynced + self.in_flight
        self.unsynced, self.in_flight = [], []

    def acknowledge_unsynced(self) -> None:
        """Record that the append without fsync begun last returned."""
        self.unsynced += self.in_flight
        self.in_flight = []

    def refuse(self, *, misplaced: bool = False) -> None:
        """Record that the call begun last failed and left none of its entries.

        They are ``misplaced`` if the drive may have written them to another place: there the call
        cannot remove them, and the next recovery of the damaged log may find them.
        """
        kept = len(self.in_flight) - self._begun
        refused = self._misplaced if misplaced else self._refused
        refused += self.in_flight[kept:]
        del self.in_flight[kept:]

    def stop(self) -> None:
        """Record that the call begun last failed with an unknown outcome.

        The unsynced entries are in flight again: a failed fsync may have lost them.
        """
        self.in_flight = self.unsynced + self.in_flight
        self.unsynced = []

    def check(self, actual: Sequence[E]) -> None:
        """Compare with a read from the running log; raise a ``Violation``."""
        self._match(actual, unsynced_kept=True)

    def settle(
        self,
        actual: Sequence[E],
        *,
        unsynced_kept: bool = False,
        excused: Excused = Excused.NONE,
    ) -> bool:
        """Compare with the first read after a recovery, and decide the entries in flight.

        Pass ``unsynced_kept`` if neither a power cut nor a fault can have taken unsynced
        entries, and in ``excused`` those that silent damage can have taken. From here on the
        entries of ``actual`` are acknowledged and the others must not return. Returns whether
        an entry that was not acknowledged survived; raises a ``Violation``.
        """
        if not self._is_excused(actual, excused):
            self._match(actual, unsynced_kept=unsynced_kept)
        happened = any(entry in actual for entry in self.unsynced + self.in_flight)
        possible = self._expected() + self._misplaced
        self._refused += [entry for entry in possible if entry not in actual]
        self.acknowledged, self.unsynced, self.in_flight = list(actual), [], []
        self._misplaced = []
        return happened

    def _expected(self) -> list[E]:
        return self.acknowledged + self.unsynced + self.in_flight

    def _is_excused(self, actual: Sequence[E], excused: Excused) -> bool:
        """Return whether ``actual`` has no other fault than entries that are excused."""
        expected = self._expected()
        if excused is Excused.LAST:
            return list(actual) == expected[: len(actual)]
        remaining = iter(expected)
        return excused is Excused.ANY and all(
            entry in self._misplaced or entry in remaining for entry in actual
        )

    def _match(self, actual: Sequence[E], *, unsynced_kept: bool) -> None:
        required = len(self.acknowledged) + (len(self.unsynced) if unsynced_kept else 0)
        if len(actual) < required or list(actual) != self._expected()[: len(actual)]:
            raise self._violation(actual, unsynced_kept=unsynced_kept)

    def _violation(self, actual: Sequence[E], *, unsynced_kept: bool) -> Violation:
        expected = self._expected()
        evidence = {
            "acknowledged": list(self.acknowledged),
            "unsynced": list(self.unsynced),
            "in_flight": list(self.in_flight),
            "actual": list(actual),
        }
        for position, entry in enumerate(actual):
            if entry in self._refused:
                return Resurrected(
                    "the log contains an entry that was refused or had been lost",
                    entry=entry, **evidence,
                )  # fmt: skip
            if entry not in expected:
                return Phantom(
                    "the log contains an entry that was never appended", entry=entry, **evidence
                )
            if entry in actual[:position]:
                return Duplicated("the log contains an entry twice", entry=entry, **evidence)
        lost = [entry for entry in self.acknowledged if entry not in actual]
        if lost and not actual:
            return SilentEmpty("the log is empty, and no damage is reported", **evidence)
        if lost:
            return LostAck("an acknowledged entry is lost", entry=lost[0], **evidence)
        if list(actual) != [entry for entry in expected if entry in actual]:
            return Reordered("the entries are not in the order of their appends", **evidence)
        lost = [entry for entry in self.unsynced if entry not in actual]
        if unsynced_kept and lost:
            return LostAck(
                "an unsynced entry is lost although the power was not cut",
                entry=lost[0], **evidence,
            )  # fmt: skip
        return LogGap("an entry survived although one before it did not", **evidence)
