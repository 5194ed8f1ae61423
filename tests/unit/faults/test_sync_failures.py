"""fsync that fails, under each policy (docs/disk.md, Failed barriers).

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
from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.survivor_set import SurvivorSet, closed
from sim.errors import SimulatedCrash
from tests.unit.faults.faulty_disk import FaultyDisk, faulty_disk

_REPORTING = [SyncFailure.EXT4, SyncFailure.XFS, SyncFailure.BTRFS]
_LOSING = [each for each in SyncFailure if each is not SyncFailure.LYING]


def _written(policy: SyncFailure, condition: str = "#1") -> tuple[FaultyDisk, int]:
    faulty = faulty_disk(f"fsync /f {condition} EIO:{policy}", {"/f": b"old"})
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
    ordering = faulty.disk.unsynced().ordering
    count = len(ordering.micros)
    legal = (mask for mask in range(1 << count) if closed(ordering, mask) == mask)
    images = [faulty.disk.power_cut(SurvivorSet.of_mask(mask, count)) for mask in legal]
    return {image.files()["/f"] for image in images}


@pytest.mark.parametrize(
    ("policy", "result", "content", "after_power_cut", "retry", "after_retry"),
    [
        ("ext4", "EIO", b"NEW", {b"old"}, "0", {b"old"}),
        ("xfs", "EIO", b"NEW", {b"old"}, "0", {b"old"}),
        ("ext4-journal", "0", b"NEW", {b"old"}, "EIO", {b"old"}),
        ("btrfs", "EIO", b"NEW", {b"old"}, "0", {b"old"}),
        ("lying", "0", b"NEW", {b"old", b"NEW"}, "0", {b"NEW"}),
    ],
)
def test_a_policy_decides_results_page_cache_and_power_cuts(
    policy: str,
    result: str,
    content: bytes,
    after_power_cut: set[bytes],
    retry: str,
    after_retry: set[bytes],
) -> None:
    faulty, descriptor = _written(SyncFailure(policy))
    assert _sync(faulty, descriptor) == result
    assert faulty.faults.fired == (1,)
    assert faulty.read("/f") == content
    assert _after_any_power_cut(faulty) == after_power_cut
    assert _sync(faulty, descriptor) == retry
    assert _after_any_power_cut(faulty) == after_retry


@pytest.mark.parametrize("policy", _LOSING)
def test_data_written_again_after_the_failure_becomes_durable(policy: SyncFailure) -> None:
    faulty, descriptor = _failed(policy)
    faulty.faults.lift()
    _sync(faulty, descriptor)
    faulty.process.pwrite(descriptor, b"NEW", 0)
    assert _sync(faulty, descriptor) == "0"
    assert _after_any_power_cut(faulty) == {b"NEW"}


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@pytest.mark.parametrize("policy", _LOSING)
@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "beside another file"])
def test_an_append_written_again_becomes_durable_with_its_size(
    policy: SyncFailure, model: PersistenceModel, is_alone: bool
) -> None:
    faulty = faulty_disk(f"fsync /f #1 EIO:{policy}", {"/f": b"old"}, model)
    descriptor = faulty.opened("/f")
    faulty.process.pwrite(descriptor, b"NEW", 3)
    for _ in range(2):
        _sync(faulty, descriptor)
    if not is_alone:
        faulty.opened("/g", os.O_CREAT)
    faulty.process.pwrite(descriptor, b"NEW", 3)
    assert _sync(faulty, descriptor) == "0"
    assert _after_any_power_cut(faulty) == {b"oldNEW"}


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "beside another file"])
@pytest.mark.parametrize("is_read", [True, False], ids=["read", "unread"])
def test_a_write_before_a_lost_size_becomes_durable_with_the_end_of_its_block(
    model: PersistenceModel, is_alone: bool, is_read: bool
) -> None:
    faulty = faulty_disk("fsync /f #1 EIO:xfs", {"/f": b"old"}, model)
    descriptor = faulty.opened("/f")
    faulty.process.pwrite(descriptor, b"LOST", 9000)
    assert _sync(faulty, descriptor) == "EIO"
    if not is_alone:
        faulty.opened("/g", os.O_CREAT)
    faulty.process.pwrite(descriptor, b"NEW", 0)
    if is_read:
        assert faulty.disk.unsynced().micros
    assert _sync(faulty, descriptor) == "0"
    size = len(b"NEW") if model.sequential else 4096
    assert _after_any_power_cut(faulty) == {b"NEW".ljust(size, b"\0")}


@pytest.mark.parametrize("policy", _REPORTING)
def test_every_descriptor_open_at_the_failure_gets_the_error_once(policy: SyncFailure) -> None:
    faulty, descriptor = _written(policy)
    other = faulty.opened("/f")
    assert _sync(faulty, descriptor) == "EIO"
    later = faulty.opened("/f")
    assert [_sync(faulty, one) for one in (descriptor, other, later)] == ["0", "EIO", "0"]
    assert [_sync(faulty, one) for one in (descriptor, other, later)] == ["0", "0", "0"]


def test_under_ext4_journal_every_descriptor_gets_the_error_once_from_the_next_fsync_on() -> None:
    faulty, descriptor = _written(SyncFailure.EXT4_JOURNAL)
    other = faulty.opened("/f")
    assert _sync(faulty, descriptor) == "0"
    assert [_sync(faulty, one) for one in (other, descriptor)] == ["EIO", "EIO"]
    assert [_sync(faulty, one) for one in (other, descriptor)] == ["0", "0"]


def test_a_lying_fsync_reports_no_error() -> None:
    faulty, descriptor = _written(SyncFailure.LYING, "#1+")
    other = faulty.opened("/f")
    assert [_sync(faulty, one) for one in (descriptor, other, descriptor)] == ["0", "0", "0"]
    assert _after_any_power_cut(faulty) == {b"old", b"NEW"}


@pytest.mark.parametrize("policy", _REPORTING)
def test_a_sticky_failure_fails_every_fsync(policy: SyncFailure) -> None:
    faulty, descriptor = _written(policy, "#1+")
    assert [_sync(faulty, descriptor) for _ in range(3)] == ["EIO", "EIO", "EIO"]
    assert faulty.faults.fired == (3,)


def test_a_sticky_failure_under_ext4_journal_is_reported_from_the_second_fsync_on() -> None:
    faulty, descriptor = _written(SyncFailure.EXT4_JOURNAL, "#1+")
    assert [_sync(faulty, descriptor) for _ in range(3)] == ["0", "EIO", "EIO"]


@pytest.mark.parametrize("policy", SyncFailure)
def test_a_kill_after_the_failure_leaves_the_page_cache(policy: SyncFailure) -> None:
    faulty, _ = _failed(policy)
    assert faulty.disk.snapshot().files()["/f"] == faulty.read("/f")


@pytest.mark.parametrize("policy", SyncFailure)
def test_a_kill_in_the_failing_fsync_leaves_the_page_cache_of_its_return(
    policy: SyncFailure,
) -> None:
    faulty, descriptor = _written(policy)
    faulty.disk.interposer = CrashCounter(faulty.disk, 1, Phase.AFTER)
    with pytest.raises(SimulatedCrash):
        faulty.process.fsync(descriptor)
    returned, _ = _failed(policy)
    assert faulty.disk.snapshot().files()["/f"] == returned.read("/f")


@pytest.mark.parametrize("policy", _LOSING)
def test_an_unsynced_truncation_outlasts_the_lost_data(policy: SyncFailure) -> None:
    faulty = faulty_disk(f"fsync /f #1 EIO:{policy}", {"/f": b"old"})
    descriptor = faulty.opened("/f", os.O_RDWR | os.O_TRUNC)
    faulty.process.write(descriptor, b"NEW")
    for _ in range(2):
        _sync(faulty, descriptor)
    assert _sync(faulty, descriptor) == "0"
    size = 3 if policy.keeps_sizes else 0
    assert _after_any_power_cut(faulty) == {bytes(size)}


@pytest.mark.parametrize("policy", SyncFailure)
def test_other_files_are_spared_and_fdatasync_fails_like_fsync(policy: SyncFailure) -> None:
    faulty = faulty_disk(f"fsync /f #1 EIO:{policy}", {"/f": b"old", "/g": b"old"})
    other = faulty.opened("/g")
    faulty.process.pwrite(other, b"NEW", 0)
    assert _sync(faulty, other) == "0"
    descriptor = faulty.opened("/f", os.O_RDWR)
    faulty.process.pwrite(descriptor, b"NEW", 0)
    if policy in _REPORTING:
        with pytest.raises(OSError, match="Input/output"):
            faulty.process.fdatasync(descriptor)
    else:
        faulty.process.fdatasync(descriptor)
    faulty.faults.assert_fired()
    assert faulty.disk.power_cut(_nothing(faulty)).files() == {"/f": b"old", "/g": b"NEW"}


def _nothing(faulty: FaultyDisk) -> SurvivorSet:
    return SurvivorSet.of_mask(0, len(faulty.disk.unsynced().micros))


@pytest.mark.parametrize("policy", _LOSING)
def test_an_append_that_was_lost_returns_with_the_next_append(policy: SyncFailure) -> None:
    faulty = faulty_disk(f"fsync /f #1 EIO:{policy}", {"/f": b"old"})
    descriptor = faulty.opened("/f", os.O_WRONLY | os.O_APPEND)
    faulty.process.write(descriptor, b"LOST")
    _sync(faulty, descriptor)
    _sync(faulty, descriptor)
    faulty.process.write(descriptor, b"next")
    assert _sync(faulty, descriptor) == "0"
    assert faulty.read("/f") == b"oldLOSTnext"
    assert faulty.disk.power_cut(_nothing(faulty)).files() == {"/f": b"oldLOSTnext"}


def test_with_the_rule_switched_off_every_fsync_succeeds() -> None:
    faulty, descriptor = _written(SyncFailure.EXT4)
    faulty.faults.switch(0, on=False)
    assert _sync(faulty, descriptor) == "0"
    assert _after_any_power_cut(faulty) == {b"NEW"}
    assert str(faulty.faults.plan) == str(FaultPlan.parse("off fsync /f #1 EIO:ext4"))
