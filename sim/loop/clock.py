"""Virtual time: it moves when somebody looks at it or advances it, and costs nothing."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Final

from sim.errors import HarnessError

EPOCH_NS: Final = 1_700_000_000_000_000_000
TICK_NS: Final = 1_000


class SimulatedClock:
    """The clock of one world; implements ``system.ports.Clock``.

    Every look is one microsecond after the last, so that no two events share a time.
    ``now_ns`` is the monotonic time without a look; the event loop, whose timers may share
    a moment, goes by it.
    """

    __slots__ = ("_sequence", "_wall_offset_ns", "now_ns")

    def __init__(self) -> None:
        self.now_ns = 0
        self._wall_offset_ns = EPOCH_NS
        self._sequence = 0

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970 in UTC."""
        self.now_ns += TICK_NS
        return self.wall_now_ns

    @property
    def wall_now_ns(self) -> int:
        """The wall clock without a look."""
        return self._wall_offset_ns + self.now_ns

    def monotonic_ns(self) -> int:
        """Return nanoseconds since the world began."""
        self.now_ns += TICK_NS
        return self.now_ns

    def sequence(self) -> int:
        """Return the next logical instant of this boot, from 1."""
        self._sequence += 1
        return self._sequence

    async def sleep(self, delay_ns: int) -> None:
        """Return after ``delay_ns`` nanoseconds of virtual time; 0 lets others run first."""
        await asyncio.sleep(delay_ns / 1e9)

    def timeout(self, delay_ns: int) -> AbstractAsyncContextManager[object]:
        """Cancel what runs inside after ``delay_ns``; then ``TimeoutError`` comes out."""
        return asyncio.timeout(delay_ns / 1e9)

    def boot(self) -> None:
        """Start a lifetime: the logical sequence begins again, time goes on."""
        self._sequence = 0

    def advance(self, delay_ns: int) -> None:
        """Let time pass, between two steps; timers that are due run at the next one."""
        if delay_ns < 0:
            raise HarnessError(f"monotonic time never steps back: delay_ns={delay_ns}")
        self.now_ns += delay_ns

    def reach(self, moment_ns: int) -> None:
        """Let time pass until the monotonic ``moment_ns``, if it is not there already."""
        self.now_ns = max(self.now_ns, moment_ns)

    def step_wall(self, delta_ns: int) -> None:
        """Set the wall clock forward or, with a negative ``delta_ns``, back; timers stay."""
        self._wall_offset_ns += delta_ns
