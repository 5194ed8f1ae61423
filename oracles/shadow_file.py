"""What a file written by whole replacements must contain, from the specification (I-34, S-21).

Old or new, nothing between; acknowledged survives. The shadow is never corrected from the
system: after a crash, what was in flight is settled once by the first look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from oracles.violation import LostAck, Resurrected, SilentEmpty, TornRecord, Violation

V = TypeVar("V")


class ShadowFile(Generic[V]):
    """The specification of one file; ``None`` means that it does not exist.

    A value is whatever the reader gives back: bytes of a plain file, a decoded record.
    """

    __slots__ = ("_acknowledged", "_in_flight", "_past", "_refused")

    def __init__(self) -> None:
        self._acknowledged: V | None = None
        self._in_flight: list[V | None] = []
        self._past: list[V | None] = []
        self._refused: list[V | None] = []

    @property
    def acknowledged(self) -> V | None:
        """What the last write that returned has put there."""
        return self._acknowledged

    @property
    def allowed(self) -> tuple[V | None, ...]:
        """Everything that a reader may see now, the acknowledged value first."""
        return (self._acknowledged, *self._in_flight)

    def begin(self, value: V | None) -> None:
        """A write (or with ``None`` a removal) was called; it is in flight.

        One that raises ``OSError`` stays in flight: it happened or not.
        """
        self._in_flight.append(value)

    def acknowledge(self) -> None:
        """The write that was begun last returned: nothing older may be seen again."""
        self._past.append(self._acknowledged)
        self._past += self._in_flight[:-1]
        self._acknowledged = self._in_flight[-1]
        self._in_flight = []

    def check(self, actual: V | None, name: str) -> None:
        """Compare with a look at the running system; raise a ``Violation`` about ``name``."""
        if actual != self._acknowledged and actual not in self._in_flight:
            raise self._explain(actual, name)

    def settle(self, actual: V | None, name: str) -> bool:
        """Compare with the first look after a recovery, and settle what was in flight.

        Returns whether something in flight turned out to have happened.
        """
        self.check(actual, name)
        if not self._in_flight:
            return False
        happened = actual != self._acknowledged
        for value in self.allowed:
            if value != actual:
                self._refused.append(value)
        self._acknowledged = actual
        self._in_flight = []
        return happened

    def change(self, change: Callable[[V], V]) -> None:
        """Let every value that may be there be what the specification makes of it."""
        if self._acknowledged is not None:
            self._acknowledged = change(self._acknowledged)
        self._in_flight = [None if value is None else change(value) for value in self._in_flight]

    def _explain(self, actual: V | None, name: str) -> Violation:
        """Name the property that this value has broken."""
        evidence = {
            "acknowledged": self._acknowledged,
            "in_flight": self._in_flight,
            "actual": actual,
        }
        if actual is None or actual == b"":
            return SilentEmpty(f"{name} is empty or gone, and nothing says so", **evidence)
        if actual in self._refused:
            return Resurrected(
                f"{name} shows a value that an earlier look had ruled out", **evidence
            )
        if actual in self._past:
            return LostAck(f"{name} shows an old value; the acknowledged one is gone", **evidence)
        return TornRecord(f"{name} shows what nobody wrote", **evidence)
