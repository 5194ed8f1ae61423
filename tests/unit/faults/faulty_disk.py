"""A disk with a fault plan on it, for the tests of the injectors."""

from __future__ import annotations

import os
from dataclasses import dataclass

from faults.injector import FaultInjector
from faults.plan import FaultPlan
from sim.disk.crash_image import Image
from sim.disk.disk import Disk
from sim.disk.handle import Handle
from sim.disk.persistence import POSIX, PersistenceModel


@dataclass(frozen=True, slots=True)
class FaultyDisk:
    """One lifetime of a handle on a disk that ``faults`` stands before."""

    faults: FaultInjector
    disk: Disk
    handle: Handle

    def opened(self, path: str, flags: int = os.O_RDWR | os.O_CREAT) -> int:
        """Open ``path``, making it if need be."""
        return self.handle.open(path, flags, 0o644)

    def read(self, path: str) -> bytes:
        """Read the file through a descriptor of its own, as far as one call gets."""
        descriptor = self.handle.open(path, os.O_RDONLY)
        try:
            return self.handle.pread(descriptor, 1 << 20, 0)
        finally:
            self.handle.close(descriptor)


def faulty_disk(
    plan: str, files: dict[str, bytes] | None = None, model: PersistenceModel = POSIX
) -> FaultyDisk:
    """Return a disk on which ``files`` are durable, and then ``plan`` is in force."""
    prepared = Handle(Disk(model=model))
    for path, content in (files or {}).items():
        descriptor = prepared.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        prepared.write(descriptor, content)
    prepared.sync()
    return booted(FaultInjector(FaultPlan.parse(plan)), prepared.disk.snapshot(), model)


def booted(faults: FaultInjector, image: Image, model: PersistenceModel = POSIX) -> FaultyDisk:
    """Start a lifetime on ``image`` with the same faults."""
    disk = Disk(image, model)
    faults.install(disk)
    return FaultyDisk(faults, disk, Handle(disk))
