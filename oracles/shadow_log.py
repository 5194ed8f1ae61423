"""What an event log must contain, from the specification (S-01, S-06…S-09, S-52) alone.

The shadow knows each entry as acknowledged, unsynced, in flight, or impossible. An append is
acknowledged when it returns, and so is all that was unsynced before it. A note that returned
survives a kill; a power cut may take it. What a crash leaves of everything that is not
acknowledged is a beginning of it: never an entry without those before it. A call that was
refused has left nothing.

The shadow never learns an entry from the system: when a lifetime ends, each entry that is
not acknowledged is settled once, by the first complete look at the recovered log, to
"happened" or "did not". Both framings obey the same shadow: how a line is framed is
nobody's business but the log's.

An entry is any value that compares by equality; two entries of one log must differ.
"""

from __future__ import annotations

from collections.abc import Sequence
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


class ShadowLog(Generic[E]):
    """The specification of one event log, run beside it.

    ``acknowledged`` must be there, in order; ``unsynced`` stand behind them, unless a power
    cut took them; ``in_flight`` come last, and may be there or not.
    """

    __slots__ = ("_begun", "_refused", "acknowledged", "in_flight", "unsynced")

    def __init__(self) -> None:
        self.acknowledged: list[E] = []
        self.unsynced: list[E] = []
        self.in_flight: list[E] = []
        self._begun = 0
        self._refused: list[E] = []

    @property
    def settled(self) -> bool:
        """Whether every entry is acknowledged or impossible."""
        return not (self.unsynced or self.in_flight)

    def begin(self, *entries: E) -> None:
        """An append or a note of these entries was called; they are in flight."""
        self._begun = len(entries)
        self.in_flight += entries

    def acknowledge(self) -> None:
        """The append that was begun last returned."""
        self.acknowledged += self.unsynced + self.in_flight
        self.unsynced, self.in_flight = [], []

    def acknowledge_unsynced(self) -> None:
        """The note that was begun last returned."""
        self.unsynced += self.in_flight
        self.in_flight = []

    def refuse(self) -> None:
        """The call that was begun last said that nothing of its entries is left."""
        kept = len(self.in_flight) - self._begun
        self._refused += self.in_flight[kept:]
        del self.in_flight[kept:]

    def stop(self) -> None:
        """The call that was begun last said that its fate is unknown, and so is all unsynced."""
        self.in_flight = self.unsynced + self.in_flight
        self.unsynced = []

    def check(self, actual: Sequence[E]) -> None:
        """Compare with a look at the running log; raise a ``Violation``."""
        self._match(actual, unsynced_kept=True)

    def settle(self, actual: Sequence[E], *, unsynced_kept: bool = False) -> bool:
        """Compare with the first look after a recovery, and settle what was open.

        ``unsynced_kept``: neither a power cut nor a fault can have taken what was unsynced. From
        here on an entry that was seen is acknowledged, and one that was not seen must never
        appear. Returns whether something open turned out to have happened; raises a
        ``Violation``.
        """
        self._match(actual, unsynced_kept=unsynced_kept)
        happened = len(actual) > len(self.acknowledged)
        self._refused += self._known()[len(actual) :]
        self.acknowledged, self.unsynced, self.in_flight = list(actual), [], []
        return happened

    def _known(self) -> list[E]:
        return self.acknowledged + self.unsynced + self.in_flight

    def _match(self, actual: Sequence[E], *, unsynced_kept: bool) -> None:
        required = len(self.acknowledged) + (len(self.unsynced) if unsynced_kept else 0)
        if len(actual) < required or list(actual) != self._known()[: len(actual)]:
            raise self._explain(actual, unsynced_kept=unsynced_kept)

    def _explain(self, actual: Sequence[E], *, unsynced_kept: bool) -> Violation:
        """Name the property that a log which does not match has broken."""
        known = self._known()
        evidence = {
            "acknowledged": list(self.acknowledged),
            "unsynced": list(self.unsynced),
            "in_flight": list(self.in_flight),
            "actual": list(actual),
        }
        for position, entry in enumerate(actual):
            if entry in self._refused:
                return Resurrected(
                    "an entry is there that was refused, or that an earlier look had shown "
                    "to be absent", entry=entry, **evidence,
                )  # fmt: skip
            if entry not in known:
                return Phantom("an entry is there that nobody wrote", entry=entry, **evidence)
            if entry in actual[:position]:
                return Duplicated("an entry is there twice", entry=entry, **evidence)
        lost = [entry for entry in self.acknowledged if entry not in actual]
        if lost and not actual:
            return SilentEmpty("all entries are gone, and nothing says so", **evidence)
        if lost:
            return LostAck("an acknowledged entry is gone", entry=lost[0], **evidence)
        if list(actual) != [entry for entry in known if entry in actual]:
            return Reordered("the entries are not in the order of their appends", **evidence)
        lost = [entry for entry in self.unsynced if entry not in actual]
        if unsynced_kept and lost:
            return LostAck("a note is gone, and the power was not cut", entry=lost[0], **evidence)
        return LogGap("an entry is there without one that was written before it", **evidence)
