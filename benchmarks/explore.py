"""The crash engine: the growth of its cost, and the crash states that it builds per second."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from benchmarks.row import Row, paired, seconds_of
from oracles.history import History, Known
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from sim.disk.calls.process import Process
from sim.disk.disk import Disk

_MIB: Final = 1 << 20
_SNAPSHOTS: Final = 300
_OPERATIONS_GOAL: Final = 50_000


def rows() -> Iterator[Row]:
    """Yield the rows of growth, of snapshots, and of states."""
    yield _growth()
    yield _snapshots()
    yield _states()


def _accept(_: Process, __: Known) -> None:
    """Check nothing, so that only the engine's own cost is measured."""


def _atomic_writes(count: int) -> Callable[[Process, History], None]:
    def workload(disk: Process, ack: History) -> None:
        for number in range(count):
            data = b"%d" % number
            descriptor = disk.open("/f.tmp", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
            disk.write(descriptor, data)
            disk.fsync(descriptor)
            disk.close(descriptor)
            disk.replace("/f.tmp", "/f")
            root = disk.open("/", os.O_RDONLY)
            disk.fsync(root)
            disk.close(root)
            ack({"/f": data})

    return workload


def _growth() -> Row:
    def explored(count: int) -> None:
        explore(_atomic_writes(count), _accept)

    four, one = paired(partial(explored, 400), partial(explored, 100))
    return Row(
        "explore 4 N / N operations", four * 1e3, one * 1e3, "ms", "<=", 4.5,
        "2,000 operations beside 500, every crash point, posix",
    )  # fmt: skip


def _disk_of(size_bytes: int) -> Disk:
    """Return a disk with a durable file of this size, and eight unsynced writes."""
    process = Process(Disk())
    descriptor = process.open("/data", os.O_CREAT | os.O_WRONLY)
    for offset in range(0, size_bytes, _MIB):
        process.pwrite(descriptor, os.urandom(16) * (_MIB // 16), offset)
    disk = Disk(process.disk.unmounted())
    again = Process(disk)
    opened = again.open("/data", os.O_WRONLY)
    for block in range(8):
        again.pwrite(opened, b"unsynced", block * 4096)
    return disk


def _snapshots() -> Row:
    large, small = _disk_of(64 * _MIB), _disk_of(_MIB)

    def take(disk: Disk) -> None:
        for _ in range(_SNAPSHOTS):
            disk.snapshot()

    ours, beside = paired(partial(take, large), partial(take, small))
    scale = 1e6 / _SNAPSHOTS
    return Row(
        "snapshot 64 MiB / 1 MiB", ours * scale, beside * scale, "µs", "<=", 1.2,
        "8 unsynced writes on both",
    )  # fmt: skip


def _scattered(disk: Process, ack: History) -> None:
    """Eight files of one byte, created, written and never synced: many small survivor sets."""
    ack("started")
    for number in range(8):
        descriptor = disk.open(f"/{number}", os.O_CREAT | os.O_WRONLY)
        disk.pwrite(descriptor, b"x", 0)
        disk.close(descriptor)


def _states() -> Row:
    limits = Limits(states_per_point=20_000, engine=Engine.BRUTE)
    built = explore(_scattered, _accept, "btrfs", limits).built

    def run() -> None:
        explore(_scattered, _accept, "btrfs", limits)

    run()
    seconds = min(seconds_of(run) for _ in range(3))
    return Row(
        "crash states / s", built / seconds, _OPERATIONS_GOAL, "/s", ">=", 1.0,
        f"{built} states built and compared, the distinct ones booted; beside the goal",
    )  # fmt: skip
