"""The bound on the work for a journal, spread over its operations."""

from __future__ import annotations

from powercut.explorer.even_share import EvenShare


def test_a_share_begins_again_in_the_middle() -> None:
    share = EvenShare(100, 4)
    share.spend(70)
    share.begin_again(50, 2)
    assert [share.left(operation) for operation in range(5)] == [-20, -10, 0, 10, 20]


def test_each_operation_may_use_the_work_of_those_up_to_it() -> None:
    share = EvenShare(100, 4)
    assert [share.left(operation) for operation in range(5)] == [20, 40, 60, 80, 100]
    share.spend(50)
    assert [share.left(operation) for operation in range(5)] == [-30, -10, 10, 30, 50]
    assert share.is_left(2)
    assert not share.passed_over
    share.spend(1)
    assert not share.is_left(2)
    assert share.is_left(3)
    assert share.passed_over
