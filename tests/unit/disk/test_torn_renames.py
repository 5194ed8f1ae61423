"""A rename that may stop between its parts: those of a file, and none of a directory."""

from __future__ import annotations

import os

import pytest

from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.persistence import MODELS
from sim.disk.crash.state_space import StateSpace
from sim.disk.crash.survivor_set import SurvivorSet
from sim.disk.disk import Disk


def _paths_after_power_cuts(disk: Disk) -> set[str]:
    """Return the paths of each disk that a power cut now may leave, as one string."""
    images = (
        Image.of_platter(state.inodes, disk.next_inode)
        for state in StateSpace(disk.unsynced()).all()
    )
    return {" ".join(path for path, _ in image.tree()) for image in images}


def _write(process: Process, path: str) -> int:
    return process.open(path, os.O_CREAT | os.O_WRONLY)


@pytest.mark.parametrize("name", MODELS)
def test_a_directory_has_its_old_name_or_its_new_one(name: str) -> None:
    disk = Disk(model=MODELS[name].with_torn_rename())
    process = Process(disk)
    process.mkdir("/d")
    process.sync()
    process.rename("/d", "/e")
    assert _paths_after_power_cuts(disk) == {"/ /d", "/ /e"}


@pytest.mark.parametrize("name", MODELS)
def test_a_directory_that_was_moved_takes_new_files_after_a_power_cut(name: str) -> None:
    disk = Disk(model=MODELS[name].with_torn_rename())
    process = Process(disk)
    process.mkdir("/d")
    process.rename("/d", "/e")
    booted = Disk(disk.power_cut(SurvivorSet()))
    _write(Process(booted), "/e/f")
    assert booted.files() == {"/e/f": b""}


def test_a_file_may_have_both_names_or_none() -> None:
    disk = Disk(model=MODELS["posix"].with_torn_rename())
    process = Process(disk)
    _write(process, "/f")
    process.sync()
    process.rename("/f", "/g")
    assert _paths_after_power_cuts(disk) == {"/ /f", "/ /g", "/ /f /g", "/"}


@pytest.mark.parametrize("name", ["ext4", "xfs", "btrfs"])
def test_a_barrier_on_a_file_covers_all_parts_of_its_rename(name: str) -> None:
    disk = Disk(model=MODELS[name].with_torn_rename())
    process = Process(disk)
    descriptor = _write(process, "/f")
    process.sync()
    process.rename("/f", "/g")
    process.fsync(descriptor)
    assert _paths_after_power_cuts(disk) == {"/ /g"}
