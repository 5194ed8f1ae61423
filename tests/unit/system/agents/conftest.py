"""The world of the tests in this room."""

from __future__ import annotations

import pytest

from tests.unit.system.agents.room import Room


@pytest.fixture
def room() -> Room:
    """A new root, not opened yet, with one provider called ``scripted``."""
    return Room()
