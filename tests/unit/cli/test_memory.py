"""What a campaign asks of memory."""

from __future__ import annotations

import gc

import pytest

from powercut.fuzz.memory import settled


def test_what_is_there_is_left_out_of_collections_while_it_is_settled() -> None:
    before = gc.get_freeze_count()
    with settled():
        assert gc.get_freeze_count() > before + 10_000
    assert gc.get_freeze_count() == 0


def test_garbage_is_looked_for_less_often_while_it_is_settled() -> None:
    youngest, *older = gc.get_threshold()
    with settled():
        assert gc.get_threshold() == (10_000, *older)
    assert gc.get_threshold() == (youngest, *older)


def test_it_is_collected_again_after_a_failure() -> None:
    with pytest.raises(ValueError, match="mistake"), settled():
        raise ValueError("mistake")
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold()[0] < 10_000
