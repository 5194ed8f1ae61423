"""Counts of different digests: exact if they are few, estimated in bounded memory if many."""

from __future__ import annotations

import pickle

from powercut.fuzz.tally import KEPT, Distinct


def distinct(*numbers: range) -> Distinct:
    found = Distinct()
    for some in numbers:
        for number in some:
            found.add(str(number))
    return found


def test_few_are_counted_exactly_however_often_they_come() -> None:
    found = distinct(range(KEPT), range(100), range(100))
    assert (found.count, found.exact, found.added) == (KEPT, True, KEPT + 200)
    assert str(found) == "8,192"


def test_many_are_estimated_within_a_few_percent_and_say_so() -> None:
    for size in (KEPT + 1, 20_000, 100_000):
        found = distinct(range(size), range(0, size, 7))
        assert not found.exact
        assert abs(found.count - size) < 0.04 * size
        assert str(found).startswith("~")


def test_count_does_not_depend_on_the_order_or_on_its_parts() -> None:
    together = distinct(range(50_000), range(30_000))
    for parts in ((range(50_000), range(30_000)), (range(20), range(20, 50_000), range(30_000))):
        sum_up, sum_down = Distinct(), Distinct()
        counts = [distinct(part) for part in parts]
        for count in counts:
            sum_up.update(count)
        for count in reversed(counts):
            sum_down.update(count)
        for found in (sum_up, sum_down):
            assert (found.count, found.added) == (together.count, together.added)
            assert found.chance_of_new == together.chance_of_new


def test_chance_of_a_new_digest_is_the_share_of_those_that_occurred_once() -> None:
    assert Distinct().chance_of_new == 1.0
    assert distinct(range(100)).chance_of_new == 1.0
    assert distinct(range(100), range(50)).chance_of_new == 50 / 150
    assert distinct(range(100), range(100)).chance_of_new == 0.0
    many = distinct(range(40_000), range(20_000))
    assert abs(many.chance_of_new - 1 / 3) < 0.02


def test_a_hundred_thousand_take_no_more_memory_than_ten_thousand() -> None:
    few, many = (len(pickle.dumps(distinct(range(size)))) for size in (20_000, 100_000))
    assert many < 1.5 * few
    found = distinct(range(100_000))
    assert found.count
    assert len(pickle.dumps(found)) <= 20 * KEPT
