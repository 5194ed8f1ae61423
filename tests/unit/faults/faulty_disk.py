"""A disk with a fault plan on it, for the tests of the injectors."""

from __future__ import annotations

import os
from dataclasses import dataclass

from faults.fault_plan import FaultPlan
from faults.injector import FaultInjector
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import POSIX, PersistenceModel
from sim.disk.disk import Disk
from sim.loop.clock import SimulatedClock


@dataclass(frozen=True, slots=True)
class FaultyDisk:
    """One lifetime of a process on a disk with injected ``faults``."""

    faults: FaultInjector
    disk: Disk
    process: Process

    def opened(self, path: str, flags: int = os.O_RDWR | os.O_CREAT) -> int:
        """Open ``path``, and create it if it does not exist."""
        return self.process.open(path, flags, 0o644)

    def read(self, path: str) -> bytes:
        """Read the file by one call through a descriptor of its own."""
        descriptor = self.process.open(path, os.O_RDONLY)
        try:
            return self.process.pread(descriptor, 1 << 20, 0)
        finally:
            self.process.close(descriptor)


def faulty_disk(
    plan: str, files: dict[str, bytes] | None = None, model: PersistenceModel = POSIX
) -> FaultyDisk:
    """Return a disk with durable ``files`` and the faults of ``plan``."""
    prepared = Process(Disk(model=model))
    for path, content in (files or {}).items():
        descriptor = prepared.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        prepared.write(descriptor, content)
    return booted(FaultInjector(FaultPlan.parse(plan)), prepared.disk.unmounted(), model)


def booted(faults: FaultInjector, image: Image, model: PersistenceModel = POSIX) -> FaultyDisk:
    """Start a lifetime on ``image`` with the same faults."""
    clock = SimulatedClock()
    disk = Disk(image, model, clock.wall_ns)
    faults.install(disk, clock)
    return FaultyDisk(faults, disk, Process(disk))
