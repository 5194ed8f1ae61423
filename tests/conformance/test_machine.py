"""The conformance machine, as the user who runs the tests, and as one without privileges."""

from __future__ import annotations

import os

import pytest

from tests.conformance.arms import unprivileged
from tests.conformance.machine import ConformanceRules


class OwnLeaf(ConformanceRules):
    """As whoever runs the tests; that is root in many containers."""


class UnprivilegedLeaf(ConformanceRules):
    """As somebody whom permission bits can stop."""

    uid = unprivileged()


class TestOwn(OwnLeaf.TestCase):  # type: ignore[valid-type, misc]
    pass


@pytest.mark.skipif(os.geteuid() != 0, reason="TestOwn is unprivileged already")
class TestUnprivileged(UnprivilegedLeaf.TestCase):  # type: ignore[valid-type, misc]
    pass
