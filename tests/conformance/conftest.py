"""The two arms as fixtures: ``arm`` as whoever runs the tests, ``user`` without privileges."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.conformance.arms import Arm, acting_as, real, simulated, unprivileged


@pytest.fixture(params=["simulated", "real"])
def arm(request: pytest.FixtureRequest) -> Iterator[Arm]:
    """Lend each arm in turn, used by whoever runs the tests."""
    if request.param == "simulated":
        yield simulated(os.geteuid())
    else:
        with real() as lent:
            yield lent


@pytest.fixture(params=["simulated", "real"])
def user(request: pytest.FixtureRequest) -> Iterator[Arm]:
    """Lend each arm in turn, used by somebody whom permission bits can stop."""
    uid = unprivileged()
    if request.param == "simulated":
        yield simulated(uid)
    else:
        with real() as lent, acting_as(uid):
            yield lent
