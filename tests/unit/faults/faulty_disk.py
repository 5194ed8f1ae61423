"""A disk with a fault plan on it, for the tests of the injectors."""

from __future__ import annotations

import os
from dataclasses import dataclass

from faults.injector import FaultInjector
from faults.plan import FaultPlan
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import POSIX, PersistenceModel
from sim.disk.disk import Disk


@dataclass(frozen=True, slots=True)
class FaultyDisk:
    """One lifetime of a process on a disk that ``faults`` stands before."""

    faults: FaultInjector
    disk: Disk
    process: Process

    def opened(self, path: str, flags: int = os.O_RDWR | os.O_CREAT) -> int:
        """Open ``path``, making it if need be."""
        return self.process.open(path, flags, 0o644)

    def read(self, path: str) -> bytes:
        """Read the file through a descriptor of its own, as far as one call gets."""
        descriptor = self.process.open(path, os.O_RDONLY)
        try:
            return self.process.pread(descriptor, 1 << 20, 0)
        finally:
            self.process.close(descriptor)


def faulty_disk(
    plan: str, files: dict[str, bytes] | None = None, model: PersistenceModel = POSIX
) -> FaultyDisk:
    """Return a disk on which ``files`` are durable, and then ``plan`` is in force."""
    prepared = Process(Disk(model=model))
    for path, content in (files or {}).items():
        descriptor = prepared.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        prepared.write(descriptor, content)
    prepared.sync()
    return booted(FaultInjector(FaultPlan.parse(plan)), prepared.disk.snapshot(), model)


def booted(faults: FaultInjector, image: Image, model: PersistenceModel = POSIX) -> FaultyDisk:
    """Start a lifetime on ``image`` with the same faults."""
    disk = Disk(image, model)
    faults.install(disk)
    return FaultyDisk(faults, disk, Process(disk))
