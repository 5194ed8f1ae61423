"""The simulated disk after a failed barrier, compared with the file systems of this machine.

Each program runs on a file system over a device that fails a write, and on the simulated disk
under the model and the policy of the same name. The power cut comes right after its last barrier.
Needs root, FUSE, loop devices and the commands that make the file systems.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from powercut.calibrate.real_file_system import RealFileSystem
from powercut.fuse.mount import path_of
from sim.disk.cache.operation import SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS
from sim.disk.crash.state_space import StateSpace
from sim.disk.disk import Disk
from tests.litmus.body import runs_of
from tests.litmus.failing_images import after_power_cut, file_system_on_failing_images
from tests.litmus.programs_on_linux import PROGRAMS, File
from tests.unit.disk.test_failed_syncs_reported import FailingSyncs


class SimulatedFile(File):
    """The file on a simulated disk, whose barriers fail under a policy."""

    def __init__(self, disk: Disk, policy: SyncFailure) -> None:
        super().__init__(Process(disk), "/")
        self._disk = disk
        self._policy = policy

    @contextmanager
    def failing(self) -> Iterator[None]:
        self._disk.interposer = FailingSyncs(self._policy)
        try:
            yield
        finally:
            self._disk.interposer = None


@pytest.fixture(scope="module", params=["ext4", "xfs", "btrfs"])
def system(request: pytest.FixtureRequest) -> Iterator[RealFileSystem]:
    with file_system_on_failing_images(request.param) as system:
        yield system


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_disk_allows_what_a_file_system_leaves_after_a_failed_barrier(
    system: RealFileSystem, program: Callable[[File], None]
) -> None:
    reads, content = on_linux(system, program)
    name = system.file_system.name
    disk = Disk(model=MODELS[name])
    file = SimulatedFile(disk, SyncFailure(name))
    program(file)
    states = StateSpace(disk.unsynced()).all()
    allowed = {
        runs_of(Image.of_platter(state.inodes, disk.next_inode).files()["/f"]) for state in states
    }
    assert file.reads == reads
    assert content in allowed


def on_linux(system: RealFileSystem, program: Callable[[File], None]) -> tuple[list[str], str]:
    """Run a program; return its reads, and the content of its file after the power cut."""
    system.devices.create("run")
    with system.mounted("run") as mounted:
        system.devices.start_log("run")
        file = File(os, path_of(mounted))
        try:
            program(file)
            length = system.devices.log_length()
        finally:
            file.close()
    with after_power_cut(system, length) as mounted:
        content = runs_of(Path(path_of(mounted), "f").read_bytes())
    system.devices.remove("run")
    return file.reads, content
