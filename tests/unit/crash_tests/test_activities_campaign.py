"""The campaign of activities counts the effects by their end."""

from __future__ import annotations

from crash_tests.activities_campaign import campaign


def test_the_ends_of_two_runs_are_one_table() -> None:
    ends = campaign(1, 0, 2)
    report = ends.report()
    effects = sum(ends.effects.values())
    performed = sum(number for (*_, each), number in ends.by_end.items() if each)
    assert ends.runs == 2
    assert effects == performed + ends.repeated > 100
    assert 0 < ends.interrupted < performed
    assert f"{effects:,} effects of {performed:,} activities" in report
    assert f"2 runs, {ends.crashes:,} crashes" in report
