"""The world of the tests in this room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.system.agents.family import Family
from tests.unit.system.agents.room import LIVING, Room


@pytest.fixture(autouse=True)
def every_lifetime_ends() -> Iterator[None]:
    """No coroutine of one test is left over for the next one."""
    yield
    while LIVING:
        LIVING.pop().world.kill()


@pytest.fixture
def room() -> Room:
    """A new root, not opened yet, with one provider called ``scripted``."""
    return Room()


@pytest.fixture
def family(room: Room) -> Family:
    """An open root with a family in it."""
    return Family(room)
