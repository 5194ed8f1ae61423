"""A campaign collects garbage less often, and only its own."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from powercut.fuzz.memory import settle, settled

OBJECTS_AT_FIRST = 700


@pytest.fixture(autouse=True)
def collection_at_first() -> Iterator[None]:
    """Collect as Python does at its start; tests/conftest.py has settled the memory."""
    gc.unfreeze()
    gc.set_threshold(OBJECTS_AT_FIRST, 10, 10)
    yield
    settle()


def test_existing_objects_are_excluded_from_collections() -> None:
    with settled():
        assert gc.get_freeze_count() > 10_000
    assert gc.get_freeze_count() == 0


def test_garbage_is_collected_less_often() -> None:
    with settled():
        assert gc.get_threshold() == (10_000, 10, 10)
    assert gc.get_threshold() == (OBJECTS_AT_FIRST, 10, 10)


def test_collection_is_as_before_after_a_failure() -> None:
    with pytest.raises(ValueError, match="mistake"), settled():
        raise ValueError("mistake")
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold()[0] == OBJECTS_AT_FIRST
