"""Virtual time: it moves when somebody looks at it or advances it, and costs nothing."""

from __future__ import annotations

from typing import Final

EPOCH_NS: Final = 1_700_000_000_000_000_000
TICK_NS: Final = 1_000


class SimulatedClock:
    """The clock of one world; implements ``system.ports.Clock``.

    Every look is one microsecond after the last, so that no two events share a time.
    """

    __slots__ = ("_elapsed_ns", "_sequence")

    def __init__(self) -> None:
        self._elapsed_ns = 0
        self._sequence = 0

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970 in UTC."""
        self._elapsed_ns += TICK_NS
        return EPOCH_NS + self._elapsed_ns

    def monotonic_ns(self) -> int:
        """Return nanoseconds since the world began."""
        self._elapsed_ns += TICK_NS
        return self._elapsed_ns

    def sequence(self) -> int:
        """Return the next logical instant of this boot, from 1."""
        self._sequence += 1
        return self._sequence

    def boot(self) -> None:
        """Start a lifetime: the logical sequence begins again, time goes on."""
        self._sequence = 0
