"""Sometimes-marks: counting, adding, and naming those that were never reached."""

from __future__ import annotations

from oracles.marks import KILLED, NESTED_CRASH, TORN, Marks


def test_marks_add_up_and_the_missing_ones_are_named() -> None:
    one, other = Marks(), Marks()
    one.reach(KILLED)
    other.reach(KILLED)
    other.reach(TORN)
    one.add(other)
    assert one.reached == {KILLED: 2, TORN: 1}
    assert one.never((KILLED, NESTED_CRASH)) == (NESTED_CRASH,)
