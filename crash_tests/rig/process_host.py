"""A simulated host around one process, for workloads and checks without a world."""

from __future__ import annotations

from crash_tests.rig.database import SimulatedDatabase
from crash_tests.rig.host import SimulatedZones, simulated_files
from sim.choices import PlainChoices
from sim.disk.calls.process import Process
from sim.loop.clock import SimulatedClock
from sim.loop.ids import SimulatedIds
from sim.loop.workers import SimulatedWorkers
from system.ports import Host


def host_of(process: Process, clock: SimulatedClock | None = None) -> Host:
    """Return a host for one lifetime; every lifetime begins with the same clock and ids.

    ``clock`` is the clock of the event loop, if the lifetime has one.
    """
    return Host(
        files=simulated_files(process),
        clock=clock or SimulatedClock(),
        ids=SimulatedIds(PlainChoices()),
        database=SimulatedDatabase(process),
        workers=SimulatedWorkers(),
        zones=SimulatedZones(),
    )
