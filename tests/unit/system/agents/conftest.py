"""A family of agents for the tests of the agents."""

from __future__ import annotations

import pytest

from tests.unit.system.agents.family import Family
from tests.unit.system.agents.room import Room


@pytest.fixture
def family(room: Room) -> Family:
    """An open root with a family in it."""
    return Family(room)
