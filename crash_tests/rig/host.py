"""A ``Host`` of the runtime on the simulated machine."""

from __future__ import annotations

from datetime import tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from crash_tests.rig.database import SimulatedDatabase
from sim.disk.calls.modules import FcntlModule
from sim.disk.calls.process import Process
from sim.world import Boot
from system.host import RealFileSystem
from system.ports import FileSystem, Host

_ZONES: Final = {name: ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "America/New_York")}


class SimulatedZones:
    """Three zones, read before the simulated machine runs; implements ``system.ports.Zones``."""

    def zone(self, name: str) -> tzinfo:
        """Return a zone, or raise ``KeyError``."""
        return _ZONES[name]


def simulated_files(process: Process) -> FileSystem:
    """Return the file system of the real host, with the calls of a process on a simulated disk."""
    return RealFileSystem("/", process, FcntlModule(process))


def simulated_host(boot: Boot) -> Host:
    """Build the host of one lifetime; its database connections end with the lifetime."""
    database = SimulatedDatabase(boot.process)
    boot.on_end(database.abandon)
    return Host(
        files=simulated_files(boot.process),
        clock=boot.clock,
        ids=boot.ids,
        database=database,
        workers=boot.workers,
        zones=SimulatedZones(),
    )
