"""Execute, crash after a random prefix, recover: all events found are allowed ones."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given

from oracles.violation import LostAck, Phantom
from sim.disk.crash.persistence import POSIX
from system.runtime import Options
from tests.crash_tests.six_stages import (
    CRASHES,
    OPTIONS,
    WISHES,
    Crash,
    Event,
    Wish,
    check_allowed,
    six_stages,
)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@given(wishes=WISHES, crash=CRASHES)
def test_recovered_events_are_the_acknowledged_ones_and_some_in_flight(
    options: Options, wishes: Sequence[Wish], crash: Crash
) -> None:
    six_stages(wishes, crash, POSIX, options)


def test_the_allowed_events_have_both_bounds() -> None:
    old: set[Event] = {("agent", "Ada", "")}
    new: set[Event] = {*old, ("ended", "Ada")}
    nothing: set[Event] = set()
    check_allowed(old, old, new)
    check_allowed(new, old, new)
    with pytest.raises(LostAck):
        check_allowed(nothing, old, new)
    with pytest.raises(Phantom):
        check_allowed(new, old, old)
