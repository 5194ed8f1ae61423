"""Sometimes-marks add up, and what was never reached is named."""

from __future__ import annotations

from oracles.marks import Mark, Marks


def test_marks_add_up_and_the_missing_ones_are_named() -> None:
    one, other = Marks(), Marks()
    one.reach(Mark.KILLED)
    other.reach(Mark.KILLED)
    other.reach(Mark.TORN)
    one.add(other)
    assert one.reached == {Mark.KILLED: 2, Mark.TORN: 1}
    assert one.never((Mark.KILLED, Mark.NESTED_CRASH)) == (Mark.NESTED_CRASH,)
