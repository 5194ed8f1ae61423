"""The base of all targets of ``system``: they run on its own host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crash_tests.rig.host import simulated_host
from oracles.marks import (
    DEEP_CRASH,
    FAULT_FIRED,
    IN_FLIGHT_KEPT,
    IN_FLIGHT_LOST,
    KILLED,
    NESTED_CRASH,
    POWER_CUT_KEPT,
    POWER_CUT_LOST,
    RECOVERY_FAILED,
    STALE_TEMPORARY_SWEPT,
    TORN,
)
from powercut.fuzz.target import Target
from sim.world import Boot
from system.errors import RuntimeRefused, StorageError
from system.host import RealFileSystem
from system.ports import Host

COMMON_MARKS: Final = (
    KILLED,
    POWER_CUT_LOST,
    POWER_CUT_KEPT,
    TORN,
    NESTED_CRASH,
    DEEP_CRASH,
    IN_FLIGHT_KEPT,
    IN_FLIGHT_LOST,
    STALE_TEMPORARY_SWEPT,
    FAULT_FIRED,
    RECOVERY_FAILED,
)
"""The marks that every crashed part of the runtime can reach."""


class SystemTarget(Target[Host]):
    """A target whose lifetimes run on a ``Host`` of the runtime."""

    expected_marks: Sequence[str] = COMMON_MARKS
    refusals = (OSError, StorageError, RuntimeRefused)
    adapters = (RealFileSystem.__init__.__code__.co_filename,)

    def make_host(self, boot: Boot) -> Host:
        """Build the host of one lifetime."""
        return simulated_host(boot)
