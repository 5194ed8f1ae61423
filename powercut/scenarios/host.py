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


def host_of(handle: Handle, clock: SimulatedClock | None = None) -> Host:
    """Return a host for one lifetime; every lifetime begins with the same clock and ids.

    ``clock`` is for who keeps it, as an event loop does.
    """
    return Host(
        files=SimulatedFileSystem(handle),
        clock=clock or SimulatedClock(),
        ids=SimulatedIds(PlainChoices()),
        database=SimulatedDatabase(handle),
        workers=SimulatedWorkers(),
    )
