"""Times of rows: REAL columns hold seconds since 1970, rounded up from nanoseconds.

A row is due when the time that it holds is reached, so nothing is due before its time.
"""

from __future__ import annotations

from math import inf, nextafter
from typing import Final

from system.ports import Clock

SECOND_NS: Final = 10**9
YEAR_10000: Final = 253_402_300_800
"""The beginning of the year 10000, in seconds since 1970; all times of rows are before it."""


def seconds_of(moment_ns: int) -> float:
    """Return the least float of seconds that is not before ``moment_ns``."""
    value = moment_ns / SECOND_NS
    numerator, denominator = value.as_integer_ratio()
    is_before = numerator * SECOND_NS < moment_ns * denominator
    return nextafter(value, inf) if is_before else value


def reached_at(moment_ns: int) -> float:
    """Return the greatest float of seconds that is not after ``moment_ns``."""
    value = moment_ns / SECOND_NS
    numerator, denominator = value.as_integer_ratio()
    is_after = numerator * SECOND_NS > moment_ns * denominator
    return nextafter(value, -inf) if is_after else value


def nanoseconds_of(seconds: float) -> int:
    """Return the least number of nanoseconds that is not before ``seconds``."""
    numerator, denominator = seconds.as_integer_ratio()
    return -(-numerator * SECOND_NS // denominator)


class SteadyClock:
    """The wall clock, but never earlier than its reading at the boot plus the time since then.

    So a step back delays nothing. A step forward, or the time in which the machine was
    suspended, takes effect at the next reading, until the clock is set back.
    """

    __slots__ = ("_clock", "_first_monotonic_ns", "_first_wall_ns")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._first_wall_ns = clock.wall_ns()
        self._first_monotonic_ns = clock.monotonic_ns()

    def now_ns(self) -> int:
        """Return nanoseconds since 1970 in UTC."""
        passed_ns = self._clock.monotonic_ns() - self._first_monotonic_ns
        return max(self._first_wall_ns + passed_ns, self._clock.wall_ns())
