"""The atomic write, and two variants of it that lack one barrier each."""

from __future__ import annotations

import os
from collections.abc import Callable

from crash_tests.workloads.workload import Workload
from oracles.history import History
from sim.disk.calls.process import Process


def writer(*, fsync: bool, fsync_directory: bool) -> Callable[[Process, History], None]:
    """Return a workload that creates a file and replaces it, acknowledging both."""

    def write_twice(process: Process, ack: History) -> None:
        for content in (b"old value", b"the new value"):
            ack.attempt({"/state": content})
            descriptor = process.open("/state.tmp", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644)
            process.write(descriptor, content)
            if fsync:
                process.fsync(descriptor)
            process.close(descriptor)
            process.replace("/state.tmp", "/state")
            if fsync_directory:
                directory = process.open("/", os.O_RDONLY | os.O_DIRECTORY)
                process.fsync(directory)
                process.close(directory)
            ack({"/state": content})

    return write_twice


atomic_write = Workload(
    "replace a file: write, fsync, rename, fsync of the directory",
    writer(fsync=True, fsync_directory=True),
)
without_fsync = Workload(
    "the same, but the file is not synced",
    writer(fsync=False, fsync_directory=True),
    sound=False,
)
without_directory_fsync = Workload(
    "the same, but its directory is not synced",
    writer(fsync=True, fsync_directory=False),
    sound=False,
)
