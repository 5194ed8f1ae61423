"""Execute, crash after a random prefix, recover: all facts found are allowed ones."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given

from oracles.violation import LostAck, Phantom
from sim.disk.crash.persistence import POSIX
from system.storage.framing import Framing
from tests.crash_tests.six_stages import (
    CRASHES,
    WISHES,
    Crash,
    Fact,
    Wish,
    check_allowed,
    six_stages,
)


@pytest.mark.parametrize("framing", Framing)
@given(wishes=WISHES, crash=CRASHES)
def test_recovered_facts_are_the_acknowledged_ones_and_some_in_flight(
    framing: Framing, wishes: Sequence[Wish], crash: Crash
) -> None:
    six_stages(wishes, crash, POSIX, framing)


def test_the_allowed_facts_have_both_bounds() -> None:
    old: set[Fact] = {("agent", "Ada", "")}
    new: set[Fact] = {*old, ("ended", "Ada")}
    nothing: set[Fact] = set()
    check_allowed(old, old, new)
    check_allowed(new, old, new)
    with pytest.raises(LostAck):
        check_allowed(nothing, old, new)
    with pytest.raises(Phantom):
        check_allowed(new, old, old)
