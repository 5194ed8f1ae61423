"""Checks that read the time stamps of files: the lazy engine leaves them undecided, too."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from oracles.history import History, Known
from powercut.explorer.explore import explore
from powercut.explorer.limits import Engine, Limits
from sim.disk.calls.process import Process
from sim.disk.crash.persistence import EXT4_WRITEBACK


def write_two(process: Process, ack: History) -> None:
    process.mkdir("/d")
    for name in ("/d/a", "/d/b"):
        descriptor = process.open(name, os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"x")
        process.close(descriptor)
    process.sync()
    ack(process.stat("/d").st_mtime_ns)
    for name in ("/d/a", "/d/b"):
        process.truncate(name, 0)


READS: dict[str, Callable[[os.stat_result], object]] = {
    "st_mtime": lambda status: status.st_mtime,
    "8": lambda status: status[8],
    "-1": lambda status: status[-1],
    "slice": lambda status: status[:],
    "len": len,
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_time_is_read_without_the_contents(read: Callable[[os.stat_result], object]) -> None:
    def check(process: Process, known: Known) -> None:
        if known.acknowledged:
            read(process.stat("/d/a"))

    found = explore(write_two, check, EXT4_WRITEBACK, Limits(engine=Engine.LAZY))
    assert found.safe
    assert "executions" in str(found)


def test_an_unnamed_file_of_a_recovery_changes_no_time_of_its_directory() -> None:
    seen: dict[Engine, set[tuple[bool, int]]] = {Engine.BRUTE: set(), Engine.LAZY: set()}
    for engine, times in seen.items():

        def check(process: Process, known: Known, times: set[tuple[bool, int]] = times) -> None:
            if known.acknowledged:
                times.add((process.access("/mark", os.F_OK), process.stat("/d").st_mtime_ns))
                process.close(process.open("/mark", os.O_CREAT | os.O_WRONLY))
                process.close(process.open("/d", os.O_TMPFILE | os.O_RDWR))

        limits = Limits(engine=engine, nested=1)
        assert explore(write_two, check, EXT4_WRITEBACK, limits).safe
    assert seen[Engine.LAZY] == seen[Engine.BRUTE]
