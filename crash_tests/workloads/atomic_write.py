"""The atomic write in three variants that differ by one barrier each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from crash_tests.workloads.workload import Scenario
from oracles.history import History
from sim.disk.calls.process import Process


def writer(*, fsync: bool, fsync_directory: bool) -> Callable[[Process, History], None]:
    """Return a workload that creates a file and replaces it, acknowledging both."""

    def workload(disk: Process, ack: History) -> None:
        for content in (b"old value", b"the new value"):
            ack.attempt({"/state": content})
            descriptor = disk.open("/state.tmp", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644)
            disk.write(descriptor, content)
            if fsync:
                disk.fsync(descriptor)
            disk.close(descriptor)
            disk.replace("/state.tmp", "/state")
            if fsync_directory:
                directory = disk.open("/", os.O_RDONLY | os.O_DIRECTORY)
                disk.fsync(directory)
                disk.close(directory)
            ack({"/state": content})

    return workload


atomic_write = Scenario(
    "atomic-write",
    "replace a file: write, fsync, rename, fsync of the directory",
    writer(fsync=True, fsync_directory=True),
)
without_fsync = Scenario(
    "atomic-write-without-fsync",
    "the same, but the file is not synced",
    writer(fsync=False, fsync_directory=True),
    sound=False,
)
without_directory_fsync = Scenario(
    "atomic-write-without-directory-fsync",
    "the same, but its directory is not synced",
    writer(fsync=True, fsync_directory=False),
    sound=False,
)
SCENARIOS: Sequence[Scenario] = (atomic_write, without_fsync, without_directory_fsync)
