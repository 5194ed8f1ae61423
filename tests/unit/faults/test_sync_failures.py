"""fsync that fails: every cell of the table in the specification of the disk (CuttleFS).

The programs write ``NEW`` over the durable ``old`` and sync it, and the sync fails.
"""

from __future__ import annotations

import errno
import os

import pytest

from faults.crash_counter import CrashCounter
from faults.crash_point import Phase
from faults.fault_plan import FaultPlan
from sim.disk.cache.operation import SyncFailure
from sim.disk.crash.survivor_set import SurvivorSet
from sim.errors import SimulatedCrash
from tests.unit.faults.faulty_disk import FaultyDisk, faulty_disk

_TELLING = [SyncFailure.EXT4, SyncFailure.XFS, SyncFailure.BTRFS]


def _written(policy: SyncFailure, moment: str = "#1") -> tuple[FaultyDisk, int]:
    faulty = faulty_disk(f"fsync /f {moment} EIO:{policy}", {"/f": b"old"})
    descriptor = faulty.opened("/f")
    faulty.process.pwrite(descriptor, b"NEW", 0)
    return faulty, descriptor


def _sync(faulty: FaultyDisk, descriptor: int) -> str:
    try:
        faulty.process.fsync(descriptor)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "0"


def _failed(policy: SyncFailure) -> tuple[FaultyDisk, int]:
    faulty, descriptor = _written(policy)
    _sync(faulty, descriptor)
    faulty.faults.assert_fired()
    return faulty, descriptor


def _after_any_power_cut(faulty: FaultyDisk) -> set[bytes]:
    """Return every content of ``/f`` that a power cut may leave."""
    count = len(faulty.disk.unsynced().micros)
    images = [faulty.disk.power_cut(SurvivorSet.of_mask(mask, count)) for mask in range(1 << count)]
    return {image.files()["/f"] for image in images}


@pytest.mark.parametrize(
    ("policy", "result"),
    [("ext4", "EIO"), ("xfs", "EIO"), ("ext4-journal", "0"), ("btrfs", "EIO"), ("lying", "0")],
)
def test_what_this_fsync_returns(policy: str, result: str) -> None:
    assert _sync(*_written(SyncFailure(policy))) == result


@pytest.mark.parametrize(
    ("policy", "content"),
    [
        ("ext4", b"NEW"),
        ("xfs", b"NEW"),
        ("ext4-journal", b"NEW"),
        ("btrfs", b"old"),
        ("lying", b"NEW"),
    ],
)
def test_what_the_page_cache_shows_afterwards(policy: str, content: bytes) -> None:
    faulty, _ = _failed(SyncFailure(policy))
    assert faulty.read("/f") == content


@pytest.mark.parametrize(
    ("policy", "contents"),
    [
        ("ext4", {b"old"}),
        ("xfs", {b"old"}),
        ("ext4-journal", {b"old"}),
        ("btrfs", {b"old"}),
        ("lying", {b"old", b"NEW"}),
    ],
)
def test_what_a_power_cut_leaves_later(policy: str, contents: set[bytes]) -> None:
    faulty, _ = _failed(SyncFailure(policy))
    assert _after_any_power_cut(faulty) == contents


@pytest.mark.parametrize(
    ("policy", "result", "contents"),
    [
        ("ext4", "0", {b"old"}),
        ("xfs", "0", {b"old"}),
        ("ext4-journal", "EIO", {b"old"}),
        ("btrfs", "0", {b"old"}),
        ("lying", "0", {b"NEW"}),
    ],
)
def test_a_retry_of_the_fsync_proves_nothing(
    policy: str, result: str, contents: set[bytes]
) -> None:
    faulty, descriptor = _failed(SyncFailure(policy))
    assert _sync(faulty, descriptor) == result
    assert _after_any_power_cut(faulty) == contents


@pytest.mark.parametrize("policy", [SyncFailure.EXT4, SyncFailure.XFS, SyncFailure.EXT4_JOURNAL])
def test_data_written_again_after_the_failure_becomes_durable(policy: SyncFailure) -> None:
    faulty, descriptor = _failed(policy)
    faulty.faults.lift()
    _sync(faulty, descriptor)
    faulty.process.pwrite(descriptor, b"NEW", 0)
    assert _sync(faulty, descriptor) == "0"
    assert _after_any_power_cut(faulty) == {b"NEW"}


@pytest.mark.parametrize("policy", _TELLING)
def test_every_descriptor_open_at_the_failure_sees_it_once(policy: SyncFailure) -> None:
    faulty, descriptor = _written(policy)
    other = faulty.opened("/f")
    assert _sync(faulty, descriptor) == "EIO"
    later = faulty.opened("/f")
    assert [_sync(faulty, one) for one in (descriptor, other, later)] == ["0", "EIO", "0"]
    assert [_sync(faulty, one) for one in (descriptor, other, later)] == ["0", "0", "0"]


def test_under_ext4_journal_the_next_fsync_tells_and_every_descriptor_sees_it_once() -> None:
    faulty, descriptor = _written(SyncFailure.EXT4_JOURNAL)
    other = faulty.opened("/f")
    assert _sync(faulty, descriptor) == "0"
    assert [_sync(faulty, one) for one in (other, descriptor)] == ["EIO", "EIO"]
    assert [_sync(faulty, one) for one in (other, descriptor)] == ["0", "0"]


def test_a_lying_fsync_is_seen_by_nobody() -> None:
    faulty, descriptor = _written(SyncFailure.LYING, "#1+")
    other = faulty.opened("/f")
    assert [_sync(faulty, one) for one in (descriptor, other, descriptor)] == ["0", "0", "0"]
    assert _after_any_power_cut(faulty) == {b"old", b"NEW"}


@pytest.mark.parametrize("policy", _TELLING)
def test_a_sticky_failure_fails_every_fsync(policy: SyncFailure) -> None:
    faulty, descriptor = _written(policy, "#1+")
    assert [_sync(faulty, descriptor) for _ in range(3)] == ["EIO", "EIO", "EIO"]
    assert faulty.faults.fired == (3,)


def test_a_sticky_failure_under_ext4_journal_tells_from_the_second_fsync_on() -> None:
    faulty, descriptor = _written(SyncFailure.EXT4_JOURNAL, "#1+")
    assert [_sync(faulty, descriptor) for _ in range(3)] == ["0", "EIO", "EIO"]


@pytest.mark.parametrize("policy", SyncFailure)
def test_a_kill_after_the_failure_leaves_what_the_page_cache_shows(policy: SyncFailure) -> None:
    faulty, _ = _failed(policy)
    assert faulty.disk.snapshot().files()["/f"] == faulty.read("/f")


@pytest.mark.parametrize("policy", SyncFailure)
def test_a_kill_in_the_failing_fsync_finds_the_page_cache_that_a_caller_would(
    policy: SyncFailure,
) -> None:
    faulty, descriptor = _written(policy)
    faulty.disk.interposer = CrashCounter(faulty.disk, 1, Phase.AFTER)
    with pytest.raises(SimulatedCrash):
        faulty.process.fsync(descriptor)
    seen, _ = _failed(policy)
    assert faulty.disk.snapshot().files()["/f"] == seen.read("/f")


def test_under_btrfs_a_truncation_that_pends_outlives_the_data_that_was_dropped() -> None:
    faulty = faulty_disk("fsync /f #1 EIO:btrfs", {"/f": b"old"})
    descriptor = faulty.opened("/f", os.O_RDWR | os.O_TRUNC)
    faulty.process.write(descriptor, b"NEW")
    assert _sync(faulty, descriptor) == "EIO"
    assert faulty.read("/f") == b""
    assert _after_any_power_cut(faulty) == {b"old", b""}


@pytest.mark.parametrize("policy", SyncFailure)
def test_other_files_and_fdatasync_are_as_they_should(policy: SyncFailure) -> None:
    faulty = faulty_disk(f"fsync /f #1 EIO:{policy}", {"/f": b"old", "/g": b"old"})
    other = faulty.opened("/g")
    faulty.process.pwrite(other, b"NEW", 0)
    assert _sync(faulty, other) == "0"
    descriptor = faulty.opened("/f", os.O_RDWR)
    faulty.process.pwrite(descriptor, b"NEW", 0)
    if policy in _TELLING:
        with pytest.raises(OSError, match="Input/output"):
            faulty.process.fdatasync(descriptor)
    else:
        faulty.process.fdatasync(descriptor)
    faulty.faults.assert_fired()
    assert faulty.disk.power_cut(_nothing(faulty)).files() == {"/f": b"old", "/g": b"NEW"}


def _nothing(faulty: FaultyDisk) -> SurvivorSet:
    return SurvivorSet.of_mask(0, len(faulty.disk.unsynced().micros))


@pytest.mark.parametrize("policy", [SyncFailure.EXT4, SyncFailure.XFS, SyncFailure.EXT4_JOURNAL])
def test_an_append_that_was_marked_clean_leaves_a_hole_before_the_next_one(
    policy: SyncFailure,
) -> None:
    faulty = faulty_disk(f"fsync /f #1 EIO:{policy}", {"/f": b"old"})
    descriptor = faulty.opened("/f", os.O_WRONLY | os.O_APPEND)
    faulty.process.write(descriptor, b"LOST")
    _sync(faulty, descriptor)
    _sync(faulty, descriptor)
    faulty.process.write(descriptor, b"next")
    assert _sync(faulty, descriptor) == "0"
    assert faulty.read("/f") == b"oldLOSTnext"
    assert faulty.disk.power_cut(_nothing(faulty)).files() == {"/f": b"old\0\0\0\0next"}


def test_a_plan_without_its_rule_lets_every_fsync_succeed() -> None:
    faulty, descriptor = _written(SyncFailure.EXT4)
    faulty.faults.switch(0, on=False)
    assert _sync(faulty, descriptor) == "0"
    assert _after_any_power_cut(faulty) == {b"NEW"}
    assert str(faulty.faults.plan) == str(FaultPlan.parse("off fsync /f #1 EIO:ext4"))
