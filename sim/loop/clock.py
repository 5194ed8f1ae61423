"""Virtual time: it advances when it is read or moved, and costs no real time."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from sim.errors import HarnessError

EPOCH_NS: Final = 1_700_000_000_000_000_000
TICK_NS: Final = 1_000


class ClockInterposer(Protocol):
    """Called before each reading of the wall clock; it may call ``step_wall``."""

    def reading_wall(self) -> None: ...


class SimulatedClock:
    """The clock of one world, read by the program, by its event loop and by the disk.

    Each reading advances time by one microsecond, so that no two events have the same time.
    ``now_ns`` is the monotonic time, read without advancing it; timers use it, so several may
    be due at the same time. ``interposer`` is removed at the next boot.
    """

    __slots__ = ("_wall_offset_ns", "interposer", "now_ns")

    def __init__(self) -> None:
        self.now_ns = 0
        self.interposer: ClockInterposer | None = None
        self._wall_offset_ns = EPOCH_NS

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970 in UTC."""
        if self.interposer is not None:
            self.interposer.reading_wall()
        self.now_ns = now_ns = self.now_ns + TICK_NS
        return self._wall_offset_ns + now_ns

    @property
    def wall_now_ns(self) -> int:
        """The wall clock, read without advancing it."""
        return self._wall_offset_ns + self.now_ns

    def monotonic_ns(self) -> int:
        """Return nanoseconds since the world was made."""
        self.now_ns += TICK_NS
        return self.now_ns

    async def sleep(self, delay_ns: int) -> None:
        """Return after ``delay_ns`` nanoseconds of virtual time; 0 lets other tasks run first."""
        await asyncio.sleep(delay_ns / 1e9)

    def timeout(self, delay_ns: int) -> AbstractAsyncContextManager[object]:
        """Cancel the block after ``delay_ns`` nanoseconds, and raise ``TimeoutError`` from it."""
        return asyncio.timeout(delay_ns / 1e9)

    def boot(self) -> None:
        """Start a lifetime without an interposer; time goes on."""
        self.interposer = None

    def advance(self, delay_ns: int) -> None:
        """Add ``delay_ns`` to the time; ``HarnessError`` if it is negative.

        Timers that become due run at the next step of the event loop.
        """
        if delay_ns < 0:
            raise HarnessError(f"monotonic time never steps back: delay_ns={delay_ns}")
        self.now_ns += delay_ns

    def advance_to(self, moment_ns: int) -> None:
        """Set the monotonic time to ``moment_ns``, unless it is later already."""
        self.now_ns = max(self.now_ns, moment_ns)

    def step_wall(self, delta_ns: int) -> None:
        """Set the wall clock forward or, with a negative ``delta_ns``, back; timers stay."""
        self._wall_offset_ns += delta_ns
