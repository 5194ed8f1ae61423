"""The conformance machine, as the user who runs the tests, and as one without privileges."""

from __future__ import annotations

import os

import pytest

from tests.conformance.machine import ConformanceRules, UnprivilegedRules


class OwnLeaf(ConformanceRules):
    """Whoever runs the tests."""


class UnprivilegedLeaf(UnprivilegedRules):
    """Somebody whom permission bits can stop."""


TestOwn = OwnLeaf.TestCase
TestUnprivileged = pytest.mark.skipif(
    os.geteuid() != 0, reason="the user who runs the tests is unprivileged already"
)(UnprivilegedLeaf.TestCase)
