"""The times of files and directories on the simulated disk."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from sim.disk.calls.process import Process
from sim.disk.disk import Disk

Call = Callable[[], object]


class Clock:
    """Shows another time at each look."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        self.now_ns += 1
        return self.now_ns


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def process(clock: Clock) -> Process:
    return Process(Disk(now_ns=clock))


def test_every_change_of_a_file_sets_its_change_time(process: Process, clock: Clock) -> None:
    """That it gets or loses a name is a change, also where a rename replaces the name."""
    descriptor = process.open("/file", os.O_CREAT | os.O_RDWR)
    process.close(process.open("/new", os.O_CREAT))
    process.link("/file", "/a")
    calls: list[Call] = [
        lambda: process.write(descriptor, b"data"),
        lambda: process.ftruncate(descriptor, 1),
        lambda: process.posix_fallocate(descriptor, 0, 9),
        lambda: process.chmod("/file", 0o600),
        lambda: process.link("/file", "/b"),
        lambda: process.rename("/b", "/c"),
        lambda: process.unlink("/c"),
        lambda: process.rename("/new", "/a"),
    ]
    for call in calls:
        call()
        assert process.fstat(descriptor).st_ctime_ns == clock.now_ns


def test_every_change_of_its_names_sets_both_times_of_a_directory(
    process: Process, clock: Clock
) -> None:
    process.mkdir("/d")
    process.mkdir("/e")
    calls: list[tuple[Call, str]] = [
        (lambda: process.symlink("x", "/d/link"), "d"),
        (lambda: process.link("/d/link", "/d/other", follow_symlinks=False), "d"),
        (lambda: process.rename("/d/other", "/e/other"), "de"),
        (lambda: process.unlink("/e/other"), "e"),
    ]
    for call, directories in calls:
        call()
        for name in directories:
            status = process.stat(f"/{name}")
            assert (status.st_mtime_ns, status.st_ctime_ns) == (clock.now_ns, clock.now_ns)
