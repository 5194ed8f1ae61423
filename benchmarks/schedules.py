"""Crash-recover schedules of a small workload, beside the best Python peer with a disk.

A schedule: write, fsync, write, crash at some operation, recover, check. Here the crash leaves any
survivor set that the persistence model allows; on the disk of ``simloom`` each file is lost, torn
or kept as a whole. It needs Python 3.12.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from benchmarks.row import Row, paired
from faults.crash_counter import CrashCounter
from faults.crash_point import Phase
from sim.choices import Choices, SeededChoices
from sim.disk.calls.process import Process
from sim.disk.crash.choose_survivors import choose_survivors
from sim.disk.disk import Disk
from sim.errors import SimulatedCrash

_SCHEDULES: Final = 300
_FIRST: Final = b"first"
_SECOND: Final = b"later"


def rows() -> Iterator[Row]:
    """Yield the row, if the peer is installed."""
    if find_spec("simloom") is None:
        return
    ours, beside = paired(_ours, _simlooms)
    yield Row(
        "crash-recover schedules / simloom", _SCHEDULES / ours, _SCHEDULES / beside, "/s", ">=",
        10.0, f"{_SCHEDULES} seeded schedules each",
    )  # fmt: skip


def _ours() -> None:
    for seed in range(_SCHEDULES):
        _schedule(SeededChoices(seed))


def _schedule(choices: Choices) -> None:
    disk = Disk()
    counter = CrashCounter(disk, choices.integer("operation", 1, 4), Phase.AFTER)
    disk.interposer = counter
    acknowledged = _run_until_crash(disk)
    image = disk.power_cut(choose_survivors(choices, disk.unsynced().ordering))
    _check(Process(Disk(image)), acknowledged=acknowledged)


def _run_until_crash(disk: Disk) -> bool:
    process = Process(disk)
    acknowledged = False
    try:
        descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
        process.pwrite(descriptor, _FIRST, 0)
        process.sync()
        acknowledged = True
        process.pwrite(descriptor, _SECOND, 0)
    except SimulatedCrash:
        pass
    return acknowledged


def _check(process: Process, *, acknowledged: bool) -> None:
    if not acknowledged:
        return
    descriptor = process.open("/f", os.O_RDONLY)
    content = process.pread(descriptor, 16, 0)
    torn = {_SECOND[:kept] + _FIRST[kept:] for kept in range(len(_FIRST) + 1)}
    if content not in torn | {_FIRST, _SECOND}:
        raise AssertionError(f"acknowledged content={_FIRST!r} became {content!r}")


def _simlooms() -> None:
    simloom = import_module("simloom")
    for seed in range(_SCHEDULES):
        simloom.run(_peer, seed=seed)


async def _peer(world: Any) -> None:
    host = world.host("node")

    async def body() -> None:
        host.disk.write("f", _FIRST)
        host.disk.fsync("f")
        host.disk.write("f", _SECOND)

    host.spawn(body)
    await world.sleep(1)
    host.crash()
    host.restart()
    content = host.disk.read("f")
    if not (_FIRST.startswith(content) or _SECOND.startswith(content)):
        raise AssertionError(f"content={content!r}")
