"""H-4: execute, crash after a random prefix, recover; what is there is what is allowed."""

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
def test_recovered_is_acknowledged_and_at_most_what_was_in_flight(
    framing: Framing, wishes: Sequence[Wish], crash: Crash
) -> None:
    six_stages(wishes, crash, POSIX, framing)


def test_the_allowed_subset_has_both_its_edges() -> None:
    old: set[Fact] = {("agent", "Ada", "")}
    new: set[Fact] = {*old, ("ended", "Ada")}
    nothing: set[Fact] = set()
    check_allowed(old, old, new)
    check_allowed(new, old, new)
    with pytest.raises(LostAck):
        check_allowed(nothing, old, new)
    with pytest.raises(Phantom):
        check_allowed(new, old, old)
