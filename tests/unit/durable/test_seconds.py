"""Times of rows: seconds as floats, never before the time in nanoseconds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from system.durable.seconds import SECOND_NS, nanoseconds_of, reached_at, seconds_of

MOMENTS = [0, 1, 3, 10**9, 10**9 + 1, 1_700_000_000_123_456_789, 1_772_366_400_000_042_001, 2**63]


@pytest.mark.parametrize("moment_ns", MOMENTS)
def test_a_float_is_not_before_the_moment_and_the_time_reached_not_after_it(moment_ns: int) -> None:
    moment = Fraction(moment_ns, SECOND_NS)
    assert Fraction(reached_at(moment_ns)) <= moment <= Fraction(seconds_of(moment_ns))
    assert seconds_of(moment_ns) - reached_at(moment_ns) <= 2e-6 * max(1.0, float(moment) / 1e10)


@pytest.mark.parametrize("moment_ns", MOMENTS)
def test_nothing_is_due_a_nanosecond_before_its_time(moment_ns: int) -> None:
    due_at = seconds_of(moment_ns)
    due_ns = nanoseconds_of(due_at)
    assert due_ns >= moment_ns
    assert reached_at(due_ns) >= due_at
    assert due_ns == 0 or reached_at(due_ns - 1) < due_at
