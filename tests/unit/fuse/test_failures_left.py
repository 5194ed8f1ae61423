"""The failures that further barriers leave are those that an exploration finds with them."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from oracles.history import History, Known
from oracles.violation import LostAck
from powercut.explorer.explore import judged
from powercut.explorer.missing_barrier import candidates, insert
from powercut.explorer.recorded_workload import record
from powercut.explorer.repair import preventable
from powercut.fuse.failures_left import FailuresLeft
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS, POSIX, PersistenceModel
from sim.disk.disk import Disk

SECTOR = 512


def before() -> Image:
    """Return a disk with a file of one block."""
    process = Process(Disk())
    process.write(process.open("/old", os.O_CREAT | os.O_WRONLY), b"-" * 3 * SECTOR)
    return process.disk.unmounted()


def acknowledge_before_the_fsync(process: Process, ack: History) -> None:
    """Write a header and A; a barrier may be due behind the acknowledgement of A."""
    file = process.open("/old", os.O_WRONLY)
    process.pwrite(file, b"header", 0)
    process.pwrite(file, b"A", SECTOR)
    ack("A")
    process.pwrite(file, b"B", 2 * SECTOR)
    process.fsync(file)


def append_to_a_new_block(process: Process, ack: History) -> None:
    """Write a header and A into a new block, which is allocated if a barrier is inserted."""
    file = process.open("/new", os.O_CREAT | os.O_WRONLY)
    process.fsync(process.open("/", os.O_RDONLY))
    process.pwrite(file, b"header".ljust(SECTOR, b"-"), 0)
    process.pwrite(file, b"A", SECTOR)
    ack("A")


def check(process: Process, known: Known) -> None:
    """The file with A has its header, and A is there if it was acknowledged."""
    for name in process.listdir("/"):
        with process.open_file(f"/{name}", "rb") as file:
            content = file.read()
        if b"A" in content:
            assert content.startswith(b"header")
            return
    if known.acknowledged:
        raise LostAck("A is lost")


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("program", [acknowledge_before_the_fsync, append_to_a_new_block])
def test_failures_left_by_any_barrier_are_those_that_an_exploration_finds(
    program: Callable[[Process, History], None], model: PersistenceModel
) -> None:
    recorded = record(program, POSIX, before())
    found = judged(recorded, check, [model])[model.name]
    assert found.exhaustive
    barriers = {
        each: insert(recorded, each).workload
        for failure in preventable(found)
        for each in candidates(recorded, model, failure)
    }
    assert barriers
    left = FailuresLeft(found, {})
    for barrier, changed in barriers.items():
        predicted = {failure.state for failure in left.of(changed).failures}
        again = found.checker.explore(changed, model)
        assert predicted == {failure.state for failure in again.failures}, barrier
