"""The conformance machine, as the user of the tests and as a user without privileges."""

from __future__ import annotations

import os

import pytest

from tests.conformance.machine import ConformanceRules, UnprivilegedRules


class OwnLeaf(ConformanceRules):
    """The user who runs the tests."""


class UnprivilegedLeaf(UnprivilegedRules):
    """A user without privileges."""


TestOwn = OwnLeaf.TestCase
TestUnprivileged = pytest.mark.skipif(
    os.geteuid() != 0, reason="the user who runs the tests is unprivileged already"
)(UnprivilegedLeaf.TestCase)
