"""A kill keeps what the kernel had accepted, whatever calls were made before it."""

from __future__ import annotations

from tests.conformance.kill_machine import KillRules


class KillLeaf(KillRules):
    """Root, on a disk of any model."""


TestKillKeepsPageCache = KillLeaf.TestCase
