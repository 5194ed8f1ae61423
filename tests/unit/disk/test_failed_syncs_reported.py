"""A failed sync is reported once to every open file description of the file."""

from __future__ import annotations

import os

import pytest

from sim.disk.cache.operation import Operation, Sync, SyncFailure, Write
from sim.disk.calls.process import Process
from sim.disk.disk import Disk


class FailingSyncs:
    """Lets the next ``failures`` syncs fail under a policy; reads come shortened to ``reads``."""

    def __init__(self, policy: SyncFailure, failures: int = 1) -> None:
        self.policy = policy
        self.failures = failures
        self.operations: list[Operation] = []

    def before(self, operation: Operation, number: int) -> Operation:
        if isinstance(operation, Sync) and self.failures:
            self.failures -= 1
            return operation.failed(self.policy)
        return operation

    def after(self, operation: Operation, number: int) -> None:
        self.operations.append(operation)

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        return data[: len(data) // 2]


def prepared(policy: SyncFailure, failures: int = 1) -> tuple[Process, list[int]]:
    """Return a process, and three descriptors of a file, whose next sync fails."""
    process = Process(Disk())
    descriptors = [process.open("/a", os.O_CREAT | os.O_RDWR) for _ in range(3)]
    process.write(descriptors[0], b"content")
    process.disk.interposer = FailingSyncs(policy, failures)
    return process, descriptors


def errors(process: Process, descriptors: list[int]) -> list[bool]:
    """Sync each descriptor in turn; return which of them failed."""
    failed = []
    for descriptor in descriptors:
        try:
            process.fsync(descriptor)
        except OSError:
            failed.append(True)
        else:
            failed.append(False)
    return failed


@pytest.mark.parametrize("policy", [SyncFailure.EXT4, SyncFailure.XFS, SyncFailure.BTRFS])
def test_every_descriptor_open_at_the_failure_reports_it_once(policy: SyncFailure) -> None:
    process, descriptors = prepared(policy)
    assert errors(process, descriptors) == [True, True, True]
    assert errors(process, descriptors) == [False, False, False]


def test_a_descriptor_opened_after_the_failure_reports_nothing() -> None:
    process, descriptors = prepared(SyncFailure.EXT4)
    assert errors(process, descriptors[:1]) == [True]
    assert errors(process, [process.open("/a", os.O_RDWR)]) == [False]


def test_a_duplicate_shares_the_reported_errors() -> None:
    process, descriptors = prepared(SyncFailure.EXT4)
    duplicate = process.dup(descriptors[0])
    assert errors(process, [descriptors[0], duplicate]) == [True, False]


def test_two_failures_are_reported_to_other_descriptions_as_one() -> None:
    process, descriptors = prepared(SyncFailure.EXT4, failures=2)
    assert errors(process, [descriptors[0]] * 2) == [True, True]
    assert errors(process, [descriptors[1]] * 2) == [True, False]


@pytest.mark.parametrize("policy", [SyncFailure.EXT4, SyncFailure.XFS, SyncFailure.BTRFS])
def test_a_sync_that_reports_the_failure_of_another_one_makes_nothing_durable(
    policy: SyncFailure,
) -> None:
    process, descriptors = prepared(policy)
    assert errors(process, descriptors[:1]) == [True]
    process.chmod("/a", 0o600)
    unsynced = list(process.disk.unsynced().micros)
    assert errors(process, descriptors[1:]) == [True, True]
    assert list(process.disk.unsynced().micros) == unsynced
    assert errors(process, descriptors[1:2]) == [False]
    assert list(process.disk.unsynced().micros) != unsynced


def test_the_ext4_journal_policy_reports_the_failure_at_the_next_sync() -> None:
    process, descriptors = prepared(SyncFailure.EXT4_JOURNAL)
    assert errors(process, [descriptors[0]] * 3) == [False, True, False]
    assert errors(process, [descriptors[1]] * 2) == [True, False]


def test_a_lying_disk_reports_no_failure() -> None:
    process, descriptors = prepared(SyncFailure.LYING)
    assert errors(process, descriptors) == [False, False, False]


@pytest.mark.parametrize(
    ("policy", "reporting"), [(SyncFailure.EXT4, []), (SyncFailure.EXT4_JOURNAL, ["Sync"])]
)
def test_after_a_failure_the_disk_goes_on_without_its_interposer(
    policy: SyncFailure, reporting: list[str]
) -> None:
    process, descriptors = prepared(policy)
    errors(process, descriptors[:1])
    process.disk.interposer = None
    assert process.pwrite(descriptors[0], b"CON", 0) == 3
    assert errors(process, descriptors[1:2]) == [True]
    process.rename("/a", "/b")
    process.close(process.open("/a", os.O_CREAT | os.O_RDWR))
    kinds = [type(operation).__name__ for operation in process.disk.journal]
    assert kinds == ["Create", "Write", "FailedSync", "Write", *reporting, "Rename", "Create"]


def test_a_write_that_syncs_fails_with_its_sync_and_leaves_the_offset() -> None:
    process, _ = prepared(SyncFailure.EXT4)
    descriptor = process.open("/a", os.O_RDWR | os.O_SYNC)
    with pytest.raises(OSError, match="Input/output error"):
        process.write(descriptor, b"CON")
    assert process.lseek(descriptor, 0, os.SEEK_CUR) == 0
    process.disk.interposer = None
    assert process.pread(descriptor, 9, 0) == b"CONtent"


@pytest.mark.parametrize(("flag", "data_only"), [(os.O_SYNC, False), (os.O_DSYNC, True)])
def test_a_write_that_syncs_is_two_operations(flag: int, data_only: bool) -> None:
    process, _ = prepared(SyncFailure.EXT4, failures=0)
    descriptor = process.open("/a", os.O_RDWR | flag)
    interposer = process.disk.interposer
    assert isinstance(interposer, FailingSyncs)
    process.write(descriptor, b"CON")
    inode = process.fstat(descriptor).st_ino
    write, sync = interposer.operations
    assert isinstance(write, Write)
    assert write == Write("/a", inode, 0, b"CON", 7, write.now_ns)
    assert sync == Sync("/a", inode, data_only, start=0, end=3)


@pytest.mark.parametrize(
    ("way", "flags", "data_only"),
    [
        (0, os.RWF_DSYNC, True),
        (0, os.RWF_SYNC, False),
        (os.O_DSYNC, os.RWF_SYNC, False),
        (os.O_SYNC, os.RWF_DSYNC, False),
    ],
)
def test_a_vector_whose_flags_sync_is_two_operations(way: int, flags: int, data_only: bool) -> None:
    process, _ = prepared(SyncFailure.EXT4, failures=0)
    descriptor = process.open("/a", os.O_RDWR | way)
    interposer = process.disk.interposer
    assert isinstance(interposer, FailingSyncs)
    process.pwritev(descriptor, [b"C", b"ON"], 2, flags | os.RWF_APPEND)
    inode = process.fstat(descriptor).st_ino
    write, sync = interposer.operations
    assert isinstance(write, Write)
    assert write == Write("/a", inode, 7, b"CON", 7, write.now_ns)
    assert sync == Sync("/a", inode, data_only, start=7, end=10)


def test_a_read_that_comes_short_moves_the_offset_by_what_came() -> None:
    process, (descriptor, *_) = prepared(SyncFailure.EXT4)
    assert process.pread(descriptor, 9, 0) == b"con"
    process.lseek(descriptor, 0, os.SEEK_SET)
    assert (process.read(descriptor, 9), process.read(descriptor, 9)) == (b"con", b"te")


def test_a_short_write_moves_the_offset_by_what_was_taken() -> None:
    class Shortening(FailingSyncs):
        def before(self, operation: Operation, number: int) -> Operation:
            if isinstance(operation, Write):
                return operation._replace(data=operation.data[:2])
            return operation

    process, (descriptor, *_) = prepared(SyncFailure.EXT4)
    process.disk.interposer = Shortening(SyncFailure.EXT4)
    assert process.pwrite(descriptor, b"CONTENT", 0) == 2
    assert process.write(descriptor, b" more") == 2
    process.disk.interposer = None
    assert process.pread(descriptor, 20, 0) == b"COntent m"
