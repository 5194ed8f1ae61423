"""The pieces that a failed barrier leaves, and the pages that it loses."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from sim.disk.cache.operation import FailedSync, SyncFailure
from sim.disk.calls.process import Process
from sim.disk.crash.failed_barrier import left_by, lost_by
from sim.disk.crash.image import Image
from sim.disk.crash.micro_operation import GrowSize, WriteBlock
from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.disk import Disk
from tests.unit.disk.test_failed_syncs_reported import FailingSyncs


def _allocate(process: Process, descriptor: int) -> None:
    process.posix_fallocate(descriptor, 0, 10_000)


def _extend(process: Process, descriptor: int) -> None:
    process.ftruncate(descriptor, 10_000)


def _extend_by_a_write(process: Process, descriptor: int) -> None:
    process.pwrite(descriptor, b"a" * 10_000, 0)


def _allocate_within_a_write(process: Process, descriptor: int) -> None:
    process.pwrite(descriptor, b"a" * 10_000, 0)
    process.posix_fallocate(descriptor, 0, 9_000)


def _sizes_of_second_barrier(
    model: PersistenceModel, policy: SyncFailure, change: Callable[[Process, int], None]
) -> set[int]:
    """Return the sizes that a new file may have after one barrier that fails and one that works."""
    disk = Disk(model=model)
    process = Process(disk)
    descriptor = process.open("/f", os.O_CREAT | os.O_RDWR)
    process.sync()
    disk.interposer = FailingSyncs(policy)
    change(process, descriptor)
    with pytest.raises(OSError, match="Input/output error"):
        process.fsync(descriptor)
    process.fsync(descriptor)
    images = [
        Image.of_platter(state.inodes, disk.next_inode)
        for state in StateSpace(disk.unsynced()).all()
    ]
    return {len(image.files()["/f"]) for image in images}


_MODELS = pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))


@_MODELS
@pytest.mark.parametrize("change", [_allocate, _extend])
def test_a_size_that_no_write_gave_is_still_to_be_written(
    model: PersistenceModel, change: Callable[[Process, int], None]
) -> None:
    assert _sizes_of_second_barrier(model, SyncFailure.XFS, change) == {10_000}


@_MODELS
@pytest.mark.parametrize("change", [_extend_by_a_write, _allocate_within_a_write])
@pytest.mark.parametrize(
    ("policy", "size"),
    [(SyncFailure.XFS, 0), (SyncFailure.EXT4, 10_000), (SyncFailure.BTRFS, 10_000)],
)
def test_the_size_of_a_write_counts_as_written_under_xfs(
    model: PersistenceModel, policy: SyncFailure, size: int, change: Callable[[Process, int], None]
) -> None:
    assert _sizes_of_second_barrier(model, policy, change) == {size}


def test_a_piece_keeps_its_data_before_and_behind_the_pages_of_the_barrier() -> None:
    data = b"a" * 4096 + b"b" * 4096 + b"c"
    write = WriteBlock(1, 2, 0, data, fresh=True, appended=True, grows=8193)
    failed = FailedSync("/f", 2, data_only=True, policy=SyncFailure.XFS, start=5000, end=5001)
    assert list(left_by(failed, [write, GrowSize(1, 2, 8192), GrowSize(1, 3, 8192)], {})) == [
        write._replace(data=b"a" * 4096, grows=4096),
        write._replace(offset=8192, data=b"c"),
        GrowSize(1, 2, 4096),
        GrowSize(1, 3, 8192),
    ]
    assert list(lost_by(failed, [write], {})) == [write._replace(offset=4096, data=b"b" * 4096)]
