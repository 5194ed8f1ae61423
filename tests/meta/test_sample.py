"""What the gate runs of many cases: `tests/sample.py`."""

from __future__ import annotations

import pytest

from tests.sample import Sample, in_the_gate, spread


def test_a_sample_has_both_ends_and_is_spread_evenly() -> None:
    assert spread(range(101), 2) == [0, 100]
    assert spread(range(101), 5) == [0, 25, 50, 75, 100]
    assert spread("abcdef", 3) == ["a", "c", "f"]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_no_case_is_repeated(count: int) -> None:
    assert spread("abc", count) == (["a", "c"] if count == 2 else ("a", "b", "c"))


def test_cases_that_were_not_chosen_are_marked() -> None:
    first, second, third = in_the_gate([1, 2, (3, 4)], lambda case: case == 1)
    assert first == 1
    assert [mark.name for mark in second.marks] == ["stress"] == [m.name for m in third.marks]
    assert (second.values, third.values) == ((2,), (3, 4))


def test_the_fixture_returns_all_cases_for_a_stress_run(
    sample: Sample, pytestconfig: pytest.Config
) -> None:
    count = 9 if pytestconfig.getoption("--run-stress") else 2
    assert len(sample(range(9), 2)) == count
