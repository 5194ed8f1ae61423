"""The base of all targets of ``system``: they run on its own host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crash_tests.rig.host import simulated_host
from oracles.marks import Mark
from powercut.fuzz.target import Target
from sim.world import Boot
from system.ports import Host

COMMON_MARKS: Final = (
    Mark.KILLED,
    Mark.POWER_CUT_LOST,
    Mark.POWER_CUT_KEPT,
    Mark.TORN,
    Mark.NESTED_CRASH,
    Mark.DEEP_CRASH,
    Mark.IN_FLIGHT_KEPT,
    Mark.IN_FLIGHT_LOST,
    Mark.STALE_TEMPORARY_SWEPT,
    Mark.FAULT_FIRED,
    Mark.RECOVERY_FAILED,
)
"""Every crashed part of the runtime can reach these."""


class SystemTarget(Target[Host]):
    """A target whose lifetimes run on a ``Host`` of the runtime."""

    expected_marks: Sequence[Mark] = COMMON_MARKS

    def make_host(self, boot: Boot) -> Host:
        """Build the host of one lifetime."""
        return simulated_host(boot)
