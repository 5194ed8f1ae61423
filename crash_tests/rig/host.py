"""A ``Host`` of the runtime on the simulated machine."""

from __future__ import annotations

from crash_tests.rig.database import SimulatedDatabase
from crash_tests.rig.filesystem import SimulatedFileSystem
from sim.world import Boot
from system.ports import Host


def simulated_host(boot: Boot) -> Host:
    """Build the host of one lifetime; its database connections end with the lifetime."""
    database = SimulatedDatabase(boot.process)
    boot.on_end(database.abandon)
    return Host(
        files=SimulatedFileSystem(boot.process),
        clock=boot.clock,
        ids=boot.ids,
        database=database,
        workers=boot.workers,
    )
