"""Advisory locks. The other process of the real arm is a child process."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from sim.disk.calls.modules import FcntlModule
from sim.disk.calls.process import Process
from tests.conformance.arms import Arm
from tests.conformance.calls import CREATE, content, fails, put

SHARED, EXCLUSIVE, NOT_BLOCKING, UNLOCK = 1, 2, 4, 8

_CHILD = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDWR)
try:
    call = os.lockf if sys.argv[2] == "os.lockf" else getattr(fcntl, sys.argv[2])
    call(descriptor, *map(int, sys.argv[3:]))
except OSError as error:
    print(error.errno)
else:
    print(0)
"""


def elsewhere(arm: Arm, name: str, call: str, *arguments: int) -> int:
    """Return the errno, or 0, with which another process locks a file before it exits."""
    if arm.is_simulated:
        other = Process(arm.os.disk)
        descriptor = other.open(arm.path(name), os.O_RDWR)
        try:
            lock = other.lockf if call == "os.lockf" else getattr(FcntlModule(other), call)
            lock(descriptor, *arguments)
        except OSError as error:
            return error.errno or -1
        finally:
            other.exit()
        return 0
    command = [sys.executable, "-c", _CHILD, arm.path(name), call, *map(str, arguments)]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def opened(arm: Arm, count: int) -> list[int]:
    """Open the file ``a`` several times."""
    return [arm.os.open(arm.path("a"), CREATE) for _ in range(count)]


def close(arm: Arm, descriptors: list[int]) -> None:
    for descriptor in descriptors:
        arm.os.close(descriptor)


def test_flock_conflicts_between_two_descriptions_of_one_process(arm: Arm) -> None:
    first, second = opened(arm, 2)
    arm.fcntl.flock(first, SHARED)
    arm.fcntl.flock(second, SHARED | NOT_BLOCKING)
    fails(errno.EWOULDBLOCK, arm.fcntl.flock, second, EXCLUSIVE | NOT_BLOCKING)
    # The conversion that failed has released the shared lock.
    arm.fcntl.flock(first, EXCLUSIVE | NOT_BLOCKING)
    arm.fcntl.flock(first, EXCLUSIVE | NOT_BLOCKING)
    fails(errno.EWOULDBLOCK, arm.fcntl.flock, second, SHARED | NOT_BLOCKING)
    arm.fcntl.flock(first, UNLOCK)
    arm.fcntl.flock(first, UNLOCK)
    arm.fcntl.flock(second, EXCLUSIVE | NOT_BLOCKING)
    close(arm, [first, second])


def test_flock_belongs_to_the_description_until_its_last_descriptor_is_closed(arm: Arm) -> None:
    first, second = opened(arm, 2)
    duplicate = arm.os.dup(first)
    arm.fcntl.flock(first, EXCLUSIVE)
    arm.fcntl.flock(duplicate, EXCLUSIVE | NOT_BLOCKING)
    arm.os.close(first)
    fails(errno.EWOULDBLOCK, arm.fcntl.flock, second, EXCLUSIVE | NOT_BLOCKING)
    arm.os.close(duplicate)
    arm.fcntl.flock(second, EXCLUSIVE | NOT_BLOCKING)
    close(arm, [second])


def test_flock_takes_directories_readers_and_file_objects(arm: Arm) -> None:
    put(arm, "a")
    directory = arm.os.open(arm.top, os.O_RDONLY)
    arm.fcntl.flock(directory, EXCLUSIVE | NOT_BLOCKING)
    with arm.open(arm.path("a")) as file:
        arm.fcntl.flock(file, EXCLUSIVE | NOT_BLOCKING)
        assert elsewhere(arm, "a", "flock", SHARED | NOT_BLOCKING) == errno.EWOULDBLOCK
    assert elsewhere(arm, "a", "flock", SHARED | NOT_BLOCKING) == 0
    fails(errno.EINVAL, arm.fcntl.flock, directory, 0)
    arm.os.close(directory)
    fails(errno.EBADF, arm.fcntl.flock, directory, SHARED)


def test_record_locks_are_between_processes_and_by_range(arm: Arm) -> None:
    (descriptor,) = opened(arm, 1)
    arm.fcntl.lockf(descriptor, EXCLUSIVE, 10, 5)
    busy = EXCLUSIVE | NOT_BLOCKING
    held = [
        elsewhere(arm, "a", "lockf", busy, length, start)
        for length, start in ((5, 0), (6, 0), (1, 14), (1, 15), (0, 0), (-1, 6), (0, 15))
    ]
    expected = [0, errno.EAGAIN, errno.EAGAIN, 0, errno.EAGAIN, errno.EAGAIN, 0]
    assert held == expected
    # Locks of one process never conflict.
    arm.fcntl.lockf(descriptor, SHARED | NOT_BLOCKING, 4, 5)
    assert elsewhere(arm, "a", "lockf", SHARED | NOT_BLOCKING, 4, 5) == 0
    assert elsewhere(arm, "a", "lockf", busy, 4, 5) == errno.EAGAIN
    arm.fcntl.lockf(descriptor, UNLOCK, 2, 9)
    held = [elsewhere(arm, "a", "lockf", busy, 1, start) for start in (8, 9, 10, 11, 14)]
    assert held == [errno.EAGAIN, 0, 0, errno.EAGAIN, errno.EAGAIN]
    close(arm, [descriptor])


def test_closing_any_descriptor_of_the_file_ends_the_record_locks(arm: Arm) -> None:
    first, second = opened(arm, 2)
    arm.fcntl.lockf(first, EXCLUSIVE)
    assert elsewhere(arm, "a", "lockf", SHARED | NOT_BLOCKING) == errno.EAGAIN
    arm.os.close(second)
    assert elsewhere(arm, "a", "lockf", SHARED | NOT_BLOCKING) == 0
    close(arm, [first])


def test_record_locks_start_relative_to_whence(arm: Arm) -> None:
    put(arm, "a", b"x" * 100)
    (descriptor,) = opened(arm, 1)
    arm.os.lseek(descriptor, 50, os.SEEK_SET)
    arm.fcntl.lockf(descriptor, EXCLUSIVE, 1, 5, os.SEEK_CUR)
    arm.fcntl.lockf(descriptor, EXCLUSIVE, 1, -1, os.SEEK_END)
    busy = EXCLUSIVE | NOT_BLOCKING
    held = [elsewhere(arm, "a", "lockf", busy, 1, start) for start in (54, 55, 56, 98, 99, 100)]
    assert held == [0, errno.EAGAIN, 0, 0, errno.EAGAIN, 0]
    fails(errno.EINVAL, arm.fcntl.lockf, descriptor, EXCLUSIVE, 1, -1, os.SEEK_SET)
    close(arm, [descriptor])


def test_a_range_begins_and_ends_at_an_offset(arm: Arm) -> None:
    put(arm, "a", b"x")
    (descriptor,) = opened(arm, 1)
    arm.os.lseek(descriptor, 1, os.SEEK_SET)
    largest = (1 << 63) - 1
    for length, start, whence, number in (
        (-5, largest, os.SEEK_CUR, errno.EOVERFLOW),
        (0, largest, os.SEEK_END, errno.EOVERFLOW),
        (2, largest, os.SEEK_SET, errno.EOVERFLOW),
        (-5, 2, os.SEEK_CUR, errno.EINVAL),
        (5, -2, os.SEEK_END, errno.EINVAL),
    ):
        fails(number, arm.fcntl.lockf, descriptor, EXCLUSIVE, length, start, whence)
    arm.fcntl.lockf(descriptor, EXCLUSIVE, 1, largest, os.SEEK_SET)
    arm.fcntl.lockf(descriptor, EXCLUSIVE, -5, largest - 1, os.SEEK_CUR)
    directory = arm.os.open(arm.top, os.O_RDONLY)
    arm.fcntl.lockf(directory, SHARED, 5, -3, os.SEEK_END)
    close(arm, [descriptor, directory])


def test_a_record_lock_needs_the_matching_access(arm: Arm) -> None:
    path = put(arm, "a")
    reader, writer = arm.os.open(path, os.O_RDONLY), arm.os.open(path, os.O_WRONLY)
    fails(errno.EBADF, arm.fcntl.lockf, reader, EXCLUSIVE | NOT_BLOCKING)
    fails(errno.EBADF, arm.fcntl.lockf, writer, SHARED | NOT_BLOCKING)
    arm.fcntl.lockf(reader, SHARED | NOT_BLOCKING)
    arm.fcntl.lockf(writer, EXCLUSIVE | NOT_BLOCKING)
    arm.fcntl.lockf(reader, UNLOCK)
    with pytest.raises(ValueError, match="lockf"):
        arm.fcntl.lockf(reader, 64)
    close(arm, [reader, writer])


@pytest.mark.parametrize("take", [os.F_LOCK, os.F_TLOCK])
def test_os_lockf_locks_from_the_offset_on(arm: Arm, take: int) -> None:
    (descriptor,) = opened(arm, 1)
    arm.os.lseek(descriptor, 10, os.SEEK_SET)
    arm.os.lockf(descriptor, take, 5)
    busy = EXCLUSIVE | NOT_BLOCKING
    held = [elsewhere(arm, "a", "lockf", busy, 1, start) for start in (9, 10, 14, 15)]
    assert held == [0, errno.EAGAIN, errno.EAGAIN, 0]
    arm.os.lockf(descriptor, os.F_TEST, 5)
    arm.os.lockf(descriptor, os.F_ULOCK, 5)
    assert elsewhere(arm, "a", "lockf", busy) == 0
    fails(errno.EINVAL, arm.os.lockf, descriptor, 99, 5)
    close(arm, [descriptor])


@pytest.mark.parametrize(("taken", "number"), [(SHARED, 0), (EXCLUSIVE, errno.EACCES)])
def test_os_lockf_finds_only_exclusive_locks_of_others(arm: Arm, taken: int, number: int) -> None:
    (descriptor,) = opened(arm, 1)
    arm.fcntl.lockf(descriptor, taken | NOT_BLOCKING)
    assert elsewhere(arm, "a", "os.lockf", os.F_TEST, 5) == number
    close(arm, [descriptor])


def test_a_lock_does_not_stop_calls_that_take_none(arm: Arm) -> None:
    (descriptor,) = opened(arm, 1)
    arm.fcntl.flock(descriptor, EXCLUSIVE)
    arm.fcntl.lockf(descriptor, EXCLUSIVE)
    put(arm, "b", b"content")
    arm.os.replace(arm.path("b"), arm.path("a"))
    assert content(arm, arm.path("a")) == b"content"
    close(arm, [descriptor])
