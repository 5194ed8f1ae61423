"""The base of all targets of ``system``: they run on its own host."""

from __future__ import annotations

from crash_tests.rig.host import simulated_host
from powercut.fuzz.target import Target
from sim.world import Boot
from system.ports import Host


class SystemTarget(Target[Host]):
    """A target whose lifetimes run on a ``Host`` of the runtime."""

    def make_host(self, boot: Boot) -> Host:
        """Build the host of one lifetime."""
        return simulated_host(boot)
