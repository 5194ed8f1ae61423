"""Which descriptors learn of a sync that failed: each open one once, whoever asked."""

from __future__ import annotations

import os

import pytest

from sim.disk.disk import Disk
from sim.disk.handle import Handle
from sim.disk.operation import FailedSync, Operation, Sync, SyncFailure, Write


class FailingSyncs:
    """Lets the next ``failures`` syncs fail under a policy; reads come shortened to ``reads``."""

    def __init__(self, policy: SyncFailure, failures: int = 1) -> None:
        self.policy = policy
        self.failures = failures
        self.seen: list[Operation] = []

    def before(self, operation: Operation, number: int) -> Operation:
        if isinstance(operation, Sync) and self.failures:
            self.failures -= 1
            return FailedSync(operation.path, operation.inode, operation.data_only, self.policy)
        return operation

    def after(self, operation: Operation, number: int) -> None:
        self.seen.append(operation)

    def reading(self, path: str, inode: int, offset: int, data: bytes) -> bytes:
        return data[: len(data) // 2]


def prepared(policy: SyncFailure, failures: int = 1) -> tuple[Handle, list[int]]:
    """Return a handle, and three descriptors of a file, whose next sync fails."""
    handle = Handle(Disk())
    descriptors = [handle.open("/a", os.O_CREAT | os.O_RDWR) for _ in range(3)]
    handle.write(descriptors[0], b"content")
    handle.disk.interposer = FailingSyncs(policy, failures)
    return handle, descriptors


def errors(handle: Handle, descriptors: list[int]) -> list[bool]:
    """Sync each descriptor in turn; return which of them failed."""
    failed = []
    for descriptor in descriptors:
        try:
            handle.fsync(descriptor)
        except OSError:
            failed.append(True)
        else:
            failed.append(False)
    return failed


@pytest.mark.parametrize("policy", [SyncFailure.EXT4, SyncFailure.XFS, SyncFailure.BTRFS])
def test_every_descriptor_open_at_the_failure_learns_of_it_once(policy: SyncFailure) -> None:
    handle, descriptors = prepared(policy)
    assert errors(handle, descriptors) == [True, True, True]
    assert errors(handle, descriptors) == [False, False, False]


def test_a_descriptor_opened_after_the_failure_learns_nothing() -> None:
    handle, descriptors = prepared(SyncFailure.EXT4)
    assert errors(handle, descriptors[:1]) == [True]
    assert errors(handle, [handle.open("/a", os.O_RDWR)]) == [False]


def test_a_duplicate_shares_what_was_learned() -> None:
    handle, descriptors = prepared(SyncFailure.EXT4)
    twin = handle.dup(descriptors[0])
    assert errors(handle, [descriptors[0], twin]) == [True, False]


def test_two_failures_are_told_to_the_others_as_one() -> None:
    handle, descriptors = prepared(SyncFailure.EXT4, failures=2)
    assert errors(handle, [descriptors[0]] * 2) == [True, True]
    assert errors(handle, [descriptors[1]] * 2) == [True, False]


def test_a_journal_that_is_full_tells_it_at_the_next_sync() -> None:
    handle, descriptors = prepared(SyncFailure.EXT4_JOURNAL)
    assert errors(handle, [descriptors[0]] * 3) == [False, True, False]
    assert errors(handle, [descriptors[1]] * 2) == [True, False]


def test_a_disk_that_lies_tells_nobody() -> None:
    handle, descriptors = prepared(SyncFailure.LYING)
    assert errors(handle, descriptors) == [False, False, False]


@pytest.mark.parametrize("policy", [SyncFailure.EXT4, SyncFailure.EXT4_JOURNAL])
def test_after_a_failure_the_disk_goes_on_without_its_interposer(policy: SyncFailure) -> None:
    handle, descriptors = prepared(policy)
    errors(handle, descriptors[:1])
    handle.disk.interposer = None
    assert handle.pwrite(descriptors[0], b"CON", 0) == 3
    assert errors(handle, descriptors[1:2]) == [True]
    handle.rename("/a", "/b")
    handle.close(handle.open("/a", os.O_CREAT | os.O_RDWR))
    kinds = [type(operation).__name__ for operation in handle.disk.journal]
    assert kinds == ["Create", "Write", "FailedSync", "Write", "Sync", "Rename", "Create"]


def test_a_write_that_syncs_fails_with_its_sync_and_leaves_the_offset() -> None:
    handle, _ = prepared(SyncFailure.EXT4)
    descriptor = handle.open("/a", os.O_RDWR | os.O_SYNC)
    with pytest.raises(OSError, match="Input/output error"):
        handle.write(descriptor, b"CON")
    assert handle.lseek(descriptor, 0, os.SEEK_CUR) == 0
    handle.disk.interposer = None
    assert handle.pread(descriptor, 9, 0) == b"CONtent"


@pytest.mark.parametrize(("flag", "data_only"), [(os.O_SYNC, False), (os.O_DSYNC, True)])
def test_a_write_that_syncs_is_two_operations(flag: int, data_only: bool) -> None:
    handle, _ = prepared(SyncFailure.EXT4, failures=0)
    descriptor = handle.open("/a", os.O_RDWR | flag)
    interposer = handle.disk.interposer
    assert isinstance(interposer, FailingSyncs)
    handle.write(descriptor, b"CON")
    inode = handle.fstat(descriptor).st_ino
    assert interposer.seen == [
        Write("/a", inode, 0, b"CON", 7),
        Sync("/a", inode, data_only),
    ]


def test_a_read_that_comes_short_moves_the_offset_by_what_came() -> None:
    handle, (descriptor, *_) = prepared(SyncFailure.EXT4)
    assert handle.pread(descriptor, 9, 0) == b"con"
    handle.lseek(descriptor, 0, os.SEEK_SET)
    assert (handle.read(descriptor, 9), handle.read(descriptor, 9)) == (b"con", b"te")


def test_a_short_write_moves_the_offset_by_what_was_taken() -> None:
    class Shortening(FailingSyncs):
        def before(self, operation: Operation, number: int) -> Operation:
            if isinstance(operation, Write):
                return operation._replace(data=operation.data[:2])
            return operation

    handle, (descriptor, *_) = prepared(SyncFailure.EXT4)
    handle.disk.interposer = Shortening(SyncFailure.EXT4)
    assert handle.pwrite(descriptor, b"CONTENT", 0) == 2
    assert handle.write(descriptor, b" more") == 2
    handle.disk.interposer = None
    assert handle.pread(descriptor, 20, 0) == b"COntent m"
