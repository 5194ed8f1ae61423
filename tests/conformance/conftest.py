"""The two arms as fixtures: ``arm`` as the user of the tests, ``user`` without privileges."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.conformance.arms import Arm, acting_as, real, simulated, unprivileged


@pytest.fixture(params=["simulated", "real"])
def arm(request: pytest.FixtureRequest) -> Iterator[Arm]:
    """Provide each arm in turn, as the user who runs the tests."""
    if request.param == "simulated":
        yield simulated(os.geteuid())
    else:
        with real() as lent:
            yield lent


@pytest.fixture(params=["simulated", "real"])
def user(request: pytest.FixtureRequest) -> Iterator[Arm]:
    """Provide each arm in turn, as a user without privileges."""
    uid = unprivileged()
    if request.param == "simulated":
        yield simulated(uid)
    else:
        with real() as lent, acting_as(uid):
            yield lent


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Arm, Arm]]:
    """Provide both arms at once, to compare them call by call."""
    with real() as real_arm:
        yield simulated(os.geteuid()), real_arm
