"""One lifetime of a workload that needs an event loop."""

from __future__ import annotations

from crash_tests.rig.process_host import host_of
from sim.choices import PlainChoices
from sim.disk.calls.process import Process
from sim.loop.clock import SimulatedClock
from sim.loop.event_loop import SimulatedLoop
from system.ports import Host


class Lifetime:
    """A host and its event loop, both abandoned at the end."""

    __slots__ = ("_disk", "host", "loop")

    def __init__(self, process: Process) -> None:
        clock = SimulatedClock()
        self._disk = process.disk
        self.host = host_of(process, clock)
        self.loop = SimulatedLoop(clock, PlainChoices(), process.disk)

    def __enter__(self) -> tuple[Host, SimulatedLoop]:
        return self.host, self.loop

    def __exit__(self, *_failure: object) -> None:
        self._disk.power_off()
        self.loop.abandon()
