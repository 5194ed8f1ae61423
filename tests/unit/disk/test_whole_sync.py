"""A sync of the whole disk covers everything, and one of some pages nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.crash.micro_operation import WriteBlock
from sim.disk.crash.persistence import BTRFS, EXT4, MODELS
from sim.disk.crash.state_space import StateSpace
from sim.disk.disk import Disk


def outcomes(disk: Disk) -> set[tuple[tuple[str, bytes], ...]]:
    """Return the files of every disk that a power cut leaves."""
    states = StateSpace(disk.unsynced()).all(0, 1000)
    images = [Image.of_platter(state.inodes, disk.next_inode) for state in states]
    return {tuple(image.files().items()) for image in images}


def _sync_the_file_of_a_name(process: Process) -> None:
    first, second = [process.open(name, os.O_CREAT | os.O_WRONLY) for name in ("/f", "/g")]
    process.write(first, b"f" * 50)
    process.write(second, b"g" * 50)
    process.fsync(second)


def _sync_a_truncation(process: Process) -> None:
    descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
    process.write(descriptor, b"a" * 100)
    process.fsync(descriptor)
    process.ftruncate(descriptor, 10)
    process.fsync(descriptor)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (_sync_the_file_of_a_name, lambda process: process.rename("/f", "/g")),
        (_sync_a_truncation, lambda process: process.truncate("/f", 100)),
    ],
)
def test_a_synced_disk_crashes_as_one_that_is_booted_from_it(
    before: Callable[[Process], None], after: Callable[[Process], None]
) -> None:
    disk = Disk(model=BTRFS)
    process = Process(disk)
    before(process)
    process.sync()
    booted = Disk(disk.unmounted(), BTRFS)
    for each in (process, Process(booted)):
        after(each)
    assert outcomes(disk) == outcomes(booted)
    assert len(outcomes(disk)) == 2


@pytest.mark.parametrize("model", MODELS)
def test_one_piece_is_covered_as_many_are(model: str) -> None:
    disk = Disk(model=MODELS[model])
    process = Process(disk)
    process.chmod("/", 0o700)
    assert disk.unsynced().micros
    process.sync()
    assert not disk.unsynced().micros


def test_a_synced_write_leaves_the_sectors_of_another_page_apart() -> None:
    disk = Disk(model=EXT4)
    process = Process(disk)
    process.write(process.open("/f", os.O_CREAT | os.O_WRONLY), b"a" * 1024)
    process.pwrite(process.open("/f", os.O_WRONLY | os.O_DSYNC), b"b", 4096)
    left = [each for each in disk.unsynced().micros if isinstance(each, WriteBlock)]
    assert [(each.offset, len(each.data)) for each in left] == [(0, 512), (512, 512)]
