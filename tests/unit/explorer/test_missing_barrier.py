"""The gap of a missing barrier is the first place of the journal at which it makes a difference."""

from __future__ import annotations

import os

from oracles.history import History, Known
from oracles.violation import LostAck
from powercut.explorer.diagnosis import diagnose
from powercut.explorer.explore import judged
from powercut.explorer.missing_barrier import Gap
from powercut.explorer.recorded_workload import record
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import BTRFS


def rotate(process: Process, ack: History) -> None:
    """Write three logs; before each, rename the older ones, the oldest first."""
    root = process.open("/", os.O_RDONLY)
    for rotation in range(3):
        for number in reversed(range(1, rotation + 1)):
            process.rename(f"/log.{number}", f"/log.{number + 1}")
        descriptor = process.open("/log.1", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"%d" % rotation)
        process.fsync(descriptor)
        process.fsync(root)
        ack(rotation)


def check(process: Process, known: Known) -> None:
    logs = []
    for name in process.listdir("/"):
        with process.open_file(f"/{name}", "rb") as file:
            logs.append(file.read())
    for rotation in known.acknowledged:
        if str(rotation).encode() not in logs:
            raise LostAck("a log is lost", rotation=rotation)


def test_a_gap_does_not_reach_over_a_barrier_of_the_program() -> None:
    """The renames of two rotations are apart by an fsync of their directory."""
    found = diagnose(judged(record(rotate, BTRFS, Image.empty()), check, [BTRFS]))
    gaps = [cause.gap for cause in found.causes]
    assert [(gap.first.path, gap.last.path) for gap in gaps if isinstance(gap, Gap)] == [
        ("/log.1 to /log.2", "/log.1"),
        ("/log.2 to /log.3", "/log.1 to /log.2"),
    ]
