"""The specification of a file that is written by whole replacements.

A read shows the acknowledged value or one in flight, never a mixture and never an older value.
The shadow is never corrected from the system: the first read after a recovery decides once
which of the values in flight took effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from oracles.violation import LostAck, Resurrected, SilentEmpty, TornRecord, Violation

V = TypeVar("V")


class ShadowFile(Generic[V]):
    """The specification of one file; the value None means that the file does not exist.

    A value may be the bytes of the file or anything decoded from them that has equality.
    """

    __slots__ = ("_acknowledged", "_in_flight", "_past", "_refused")

    def __init__(self) -> None:
        self._acknowledged: V | None = None
        self._in_flight: list[V | None] = []
        self._past: list[V | None] = []
        self._refused: list[V | None] = []

    @property
    def acknowledged(self) -> V | None:
        """The value of the last write that returned."""
        return self._acknowledged

    @property
    def allowed(self) -> tuple[V | None, ...]:
        """The values that a read may return now, the acknowledged one first."""
        return (self._acknowledged, *self._in_flight)

    def begin(self, value: V | None) -> None:
        """Record that a write, or with None a removal, was called and is in flight.

        A call that raises ``OSError`` stays in flight: it may have taken effect.
        """
        self._in_flight.append(value)

    def acknowledge(self) -> None:
        """Record that the write begun last returned; older values are lost from here on."""
        self._past.append(self._acknowledged)
        self._past += self._in_flight[:-1]
        self._acknowledged = self._in_flight[-1]
        self._in_flight = []

    def check(self, actual: V | None, name: str) -> None:
        """Compare with a read from the running system; raise a ``Violation`` about ``name``."""
        if actual != self._acknowledged and actual not in self._in_flight:
            raise self._violation(actual, name)

    def settle(self, actual: V | None, name: str) -> bool:
        """Compare with the first read after a recovery, and decide the values in flight.

        From here on ``actual`` is acknowledged and the other values must not return. Returns
        whether a value in flight took effect; raises a ``Violation`` about ``name``.
        """
        self.check(actual, name)
        if not self._in_flight:
            return False
        happened = actual != self._acknowledged
        self._refused += [value for value in self.allowed if value != actual]
        self._acknowledged = actual
        self._in_flight = []
        return happened

    def change(self, change: Callable[[V], V]) -> None:
        """Apply to every allowed value a change that the specification makes, as at a boot."""
        if self._acknowledged is not None:
            self._acknowledged = change(self._acknowledged)
        self._in_flight = [None if value is None else change(value) for value in self._in_flight]

    def _violation(self, actual: V | None, name: str) -> Violation:
        evidence = {
            "acknowledged": self._acknowledged,
            "in_flight": self._in_flight,
            "actual": actual,
        }
        if actual is None or actual == b"":
            return SilentEmpty(f"{name} is empty or missing, and no damage is reported", **evidence)
        if actual in self._refused:
            return Resurrected(
                f"{name} shows a value that an earlier read had shown to be lost", **evidence
            )
        if actual in self._past:
            return LostAck(
                f"the acknowledged value of {name} is lost and an older one is back", **evidence
            )
        return TornRecord(f"{name} shows a value that was never written", **evidence)
