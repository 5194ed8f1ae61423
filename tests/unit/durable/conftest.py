"""A root with an open ``state.db``, for every test of durable execution."""

from __future__ import annotations

import pytest

from tests.unit.durable.durable_bench import Bench


@pytest.fixture
def bench() -> Bench:
    """A new root on a simulated machine."""
    return Bench()
