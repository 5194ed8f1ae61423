"""A simulated host around one handle, for scenarios of the runtime's own parts."""

from __future__ import annotations

from sim.choices import PlainChoices
from sim.clock import SimulatedClock
from sim.database import SimulatedDatabase
from sim.disk.handle import Handle
from sim.filesystem import SimulatedFileSystem
from sim.ids import SimulatedIds
from sim.workers import SimulatedWorkers
from system.ports import Host


def host_of(handle: Handle) -> Host:
    """Return a host for one lifetime; every lifetime begins with the same clock and ids."""
    return Host(
        files=SimulatedFileSystem(handle),
        clock=SimulatedClock(),
        ids=SimulatedIds(PlainChoices()),
        database=SimulatedDatabase(handle),
        workers=SimulatedWorkers(),
    )
