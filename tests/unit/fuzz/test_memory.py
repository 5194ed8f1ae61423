"""A campaign collects garbage less often, and only its own."""

from __future__ import annotations

import gc

import pytest

from powercut.fuzz.memory import settled


def test_existing_objects_are_excluded_from_collections() -> None:
    before = gc.get_freeze_count()
    with settled():
        assert gc.get_freeze_count() > before + 10_000
    assert gc.get_freeze_count() == 0


def test_garbage_is_collected_less_often() -> None:
    youngest, *older = gc.get_threshold()
    with settled():
        assert gc.get_threshold() == (10_000, *older)
    assert gc.get_threshold() == (youngest, *older)


def test_collection_is_as_before_after_a_failure() -> None:
    with pytest.raises(ValueError, match="mistake"), settled():
        raise ValueError("mistake")
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold()[0] < 10_000
