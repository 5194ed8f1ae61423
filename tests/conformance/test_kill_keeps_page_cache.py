"""A kill loses no operation that the kernel has accepted."""

from __future__ import annotations

from tests.conformance.kill_machine import KillRules


class KillLeaf(KillRules):
    """Root, on a disk of any model."""


TestKillKeepsPageCache = KillLeaf.TestCase
