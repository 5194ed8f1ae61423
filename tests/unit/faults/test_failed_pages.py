"""A synchronous write whose barrier fails: only its own pages count as written."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

from sim.disk.cache.inode import BLOCK_BYTES
from sim.disk.cache.operation import SyncFailure
from sim.disk.crash.persistence import EXT4, MODELS, SCC, XFS, PersistenceModel
from sim.disk.crash.survivor_set import SurvivorSet, closed
from tests.unit.faults.faulty_disk import FaultyDisk, faulty_disk

MARKED_CLEAN = [SyncFailure.EXT4, SyncFailure.XFS, SyncFailure.EXT4_JOURNAL]
OLD = b"".join(letter * BLOCK_BYTES for letter in (b"a", b"b", b"c"))


def after_failed_write(policy: str, model: PersistenceModel) -> tuple[FaultyDisk, int]:
    """Change the second page of three, append a fourth; let a write to the first one fail."""
    faulty = faulty_disk(f"fsync /f #1 EIO:{policy}", {"/f": OLD}, model)
    descriptor = faulty.opened("/f")
    faulty.process.pwrite(descriptor, b"B", BLOCK_BYTES)
    faulty.process.pwrite(descriptor, b"D", 3 * BLOCK_BYTES)
    write_synced(faulty, b"A", 0)
    faulty.faults.assert_fired()
    return faulty, descriptor


def write_synced(faulty: FaultyDisk, data: bytes, offset: int) -> None:
    """Write under ``O_DSYNC``, and pass over the error."""
    with suppress(OSError):
        faulty.process.pwrite(faulty.opened("/f", os.O_WRONLY | os.O_DSYNC), data, offset)


def synced(faulty: FaultyDisk, descriptor: int) -> FaultyDisk:
    """Sync, once more than the errors that are reported."""
    for _ in range(2):
        with suppress(OSError):
            faulty.process.fsync(descriptor)
    return faulty


def pages(content: bytes) -> str:
    """Return the first byte of each page."""
    return content[::BLOCK_BYTES].decode()


def after_power_cut(faulty: FaultyDisk) -> set[str]:
    ordering = faulty.disk.unsynced().ordering
    count = len(ordering.micros)
    legal = (mask for mask in range(1 << count) if closed(ordering, mask) == mask)
    images = [faulty.disk.power_cut(SurvivorSet.of_mask(mask, count)) for mask in legal]
    return {pages(image.files()["/f"]) for image in images}


@pytest.mark.parametrize("model", MODELS.values(), ids=str)
@pytest.mark.parametrize("policy", MARKED_CLEAN)
def test_other_pages_are_still_to_be_written(policy: str, model: PersistenceModel) -> None:
    faulty, descriptor = after_failed_write(policy, model)
    found = after_power_cut(faulty)
    assert {"abc", "aBcD"} <= found
    assert {content[0] for content in found} == {"a"}
    assert after_power_cut(synced(faulty, descriptor)) == {"aBcD"}


def test_a_lying_disk_still_has_all_pages_to_write() -> None:
    faulty, descriptor = after_failed_write(SyncFailure.LYING, EXT4)
    assert after_power_cut(synced(faulty, descriptor)) == {"ABcD"}


@pytest.mark.parametrize("model", MODELS.values(), ids=str)
def test_btrfs_loses_the_data_of_the_whole_file_and_keeps_its_size(model: PersistenceModel) -> None:
    faulty, descriptor = after_failed_write(SyncFailure.BTRFS, model)
    assert after_power_cut(synced(faulty, descriptor)) == {"abc\0"}


@pytest.mark.parametrize("policy", SyncFailure)
def test_the_page_cache_keeps_the_pages_of_the_write(policy: str) -> None:
    faulty, _ = after_failed_write(policy, EXT4)
    assert pages(faulty.read("/f")) == "ABcD"


@pytest.mark.parametrize("model", [EXT4, XFS, SCC], ids=str)
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    ("offset", "durable"),
    [(0, "\0BB"), (BLOCK_BYTES, "B\0B"), (2 * BLOCK_BYTES, "BB"), (BLOCK_BYTES + 9, "B\0B")],
)
@pytest.mark.parametrize("policy", MARKED_CLEAN)
def test_a_write_of_several_pages_loses_one_of_them(
    offset: int, durable: str, policy: SyncFailure, whole: bool, model: PersistenceModel
) -> None:
    model = model.with_whole_calls() if whole else model
    faulty = faulty_disk(f"fsync /f #1 EIO:{policy}", {"/f": b""}, model)
    descriptor = faulty.opened("/f")
    faulty.process.pwrite(descriptor, b"B" * 3 * BLOCK_BYTES, 0)
    write_synced(faulty, b"A", offset)
    faulty.faults.assert_fired()
    synced(faulty, descriptor)
    if policy is SyncFailure.EXT4:
        durable = durable.ljust(3, "\0")  # it keeps the size
    assert after_power_cut(faulty) == {durable}


@pytest.mark.parametrize(
    ("policy", "content"),
    [("ext4", "abc\0"), ("btrfs", "abc\0"), ("xfs", "abc"), ("ext4-journal", "abc")],
)
def test_an_append_that_failed_adds_a_size_or_none(policy: str, content: str) -> None:
    faulty = faulty_disk(f"fsync /f #1 EIO:{policy}", {"/f": OLD})
    write_synced(faulty, b"D", 3 * BLOCK_BYTES)
    assert after_power_cut(synced(faulty, faulty.opened("/f"))) == {content}
