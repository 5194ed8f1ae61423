"""Descriptors, one against another: duplicates, their numbers and flags; limits of the disk."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from functools import partial

import pytest

from tests.conformance.arms import Arm, file_system_type
from tests.conformance.calls import CREATE, content, fails, put
from tests.conformance.outcome import outcome


@pytest.fixture
def descriptor(arm: Arm) -> Iterator[int]:
    """Lend a descriptor, for reading and writing, of a file that holds ``content``."""
    lent = arm.os.open(put(arm, "a", b"content"), os.O_RDWR)
    yield lent
    arm.os.close(lent)


def test_a_closed_descriptor_is_ebadf_in_every_call(arm: Arm) -> None:
    descriptor = arm.os.open(put(arm, "a"), os.O_RDWR)
    arm.os.close(descriptor)
    for name, *arguments in (
        ("close",), ("read", 1), ("pread", 1, 0), ("write", b"x"), ("pwrite", b"x", 0),
        ("lseek", 0, 0), ("ftruncate", 0), ("fsync",), ("fdatasync",), ("fstat",), ("dup",),
        ("fchmod", 0), ("fchown", 0, 0), ("posix_fallocate", 0, 1), ("fchdir",), ("listdir",),
        ("dup2", descriptor), ("dup2", descriptor + 1), ("posix_fadvise", 0, 0, 0),
        ("get_inheritable",), ("set_inheritable", 1), ("get_blocking",), ("set_blocking", 1),
        ("fstatvfs",), ("fpathconf", "PC_NAME_MAX"),
    ):  # fmt: skip
        fails(errno.EBADF, getattr(arm.os, name), descriptor, *arguments)
    for name, *arguments in (
        ("stat",), ("chmod", 0), ("utime",), ("truncate", 0), ("chdir",), ("statvfs",),
        ("pathconf", "PC_NAME_MAX"), ("listxattr",),
    ):  # fmt: skip
        fails(errno.EBADF, getattr(arm.os, name), descriptor, *arguments)
    assert not arm.os.isatty(descriptor)


def test_the_lowest_free_descriptor_is_taken(arm: Arm) -> None:
    path = put(arm, "a")
    first, second, third = (arm.os.open(path, os.O_RDONLY) for _ in range(3))
    arm.os.close(second)
    arm.os.close(first)
    again = [arm.os.open(path, os.O_RDONLY), arm.os.open(path, os.O_RDONLY)]
    assert again == [first, second]
    for descriptor in (first, second, third):
        arm.os.close(descriptor)


def test_dup_shares_the_offset_and_a_second_open_does_not(arm: Arm) -> None:
    path = put(arm, "a", b"content")
    descriptor = arm.os.open(path, os.O_RDONLY)
    duplicate, other = arm.os.dup(descriptor), arm.os.open(path, os.O_RDONLY)
    arm.os.read(descriptor, 3)
    arm.os.close(descriptor)
    assert (arm.os.read(duplicate, 9), arm.os.read(other, 9)) == (b"tent", b"content")
    arm.os.close(duplicate)
    arm.os.close(other)


def test_dup2_takes_the_number_it_is_given_and_leaves_the_lower_ones_free(
    arm: Arm, descriptor: int
) -> None:
    # Other code may hold descriptors between these.
    free = [arm.os.open(arm.path("a"), os.O_RDONLY) for _ in range(6)]
    for each in free:
        arm.os.close(each)
    assert arm.os.dup2(descriptor, free[4]) == free[4]
    between = [arm.os.open(arm.path("a"), os.O_RDONLY) for _ in range(5)]
    assert between == [*free[:4], free[5]]
    for each in free:
        arm.os.close(each)
    assert arm.os.dup2(descriptor, free[1]) == free[1]
    assert arm.os.dup(descriptor) == free[0]
    arm.os.read(free[1], 3)
    assert arm.os.read(free[0], 9) == b"tent"
    arm.os.close(free[0])
    arm.os.close(free[1])


def test_dup2_closes_the_file_that_had_the_number(arm: Arm, descriptor: int) -> None:
    taken = arm.os.open(arm.path("b"), CREATE)
    arm.os.write(taken, b"b")
    arm.fcntl.flock(taken, 2)
    arm.os.dup2(descriptor, taken)
    arm.os.write(taken, b"CON")
    arm.os.close(taken)
    assert (content(arm, arm.path("a")), content(arm, arm.path("b"))) == (b"CONtent", b"b")
    other = arm.os.open(arm.path("b"), os.O_RDWR)
    arm.fcntl.flock(other, 2 | 4)
    arm.os.close(other)


def test_dup2_of_a_descriptor_to_itself_needs_only_that_it_is_open(
    arm: Arm, descriptor: int
) -> None:
    assert arm.os.dup2(descriptor, descriptor) == descriptor
    assert not arm.os.get_inheritable(descriptor)
    fails(errno.EINVAL, arm.os.dup2, descriptor, descriptor, inheritable=False)
    for number in (-1, 1 << 30):
        fails(errno.EBADF, arm.os.dup2, descriptor, number)
    assert arm.os.read(descriptor, 3) == b"con"


def test_dup2_of_a_closed_descriptor_to_itself(arm: Arm) -> None:
    closed = arm.os.open(put(arm, "a"), os.O_RDONLY)
    arm.os.close(closed)
    fails(errno.EBADF, arm.os.dup2, closed, closed)
    fails(errno.EINVAL, arm.os.dup2, closed, closed, inheritable=False)


def test_closerange_closes_open_descriptors_and_ignores_the_others(
    arm: Arm, descriptor: int
) -> None:
    first = descriptor + 200  # behind those of other code
    for number in (first, first + 2, first + 3):
        arm.os.dup2(descriptor, number)
    arm.os.closerange(first, first + 3)
    for number in range(first, first + 3):
        fails(errno.EBADF, arm.os.fstat, number)
    arm.os.closerange(first + 3, first)
    arm.os.close(first + 3)


def test_only_dup2_and_set_inheritable_make_a_descriptor_inheritable(
    arm: Arm, descriptor: int
) -> None:
    duplicate = arm.os.dup(descriptor)
    found = [arm.os.get_inheritable(each) for each in (descriptor, duplicate)]
    arm.os.set_inheritable(duplicate, True)
    found += [arm.os.get_inheritable(each) for each in (descriptor, duplicate)]
    arm.os.set_inheritable(duplicate, False)
    found.append(arm.os.get_inheritable(duplicate))
    arm.os.dup2(descriptor, duplicate)
    found.append(arm.os.get_inheritable(duplicate))
    arm.os.dup2(descriptor, duplicate, inheritable=False)
    found.append(arm.os.get_inheritable(duplicate))
    arm.os.set_inheritable(duplicate, True)
    arm.os.close(duplicate)
    found.append(arm.os.get_inheritable(arm.os.dup(descriptor)))
    arm.os.close(duplicate)
    assert found == [False, False, False, True, False, True, False, False]


def test_blocking_belongs_to_the_description(arm: Arm, descriptor: int) -> None:
    duplicate = arm.os.dup(descriptor)
    other = arm.os.open(arm.path("a"), os.O_RDWR | os.O_NONBLOCK | os.O_APPEND)
    found = [arm.os.get_blocking(each) for each in (descriptor, duplicate, other)]
    arm.os.set_blocking(duplicate, False)
    arm.os.set_blocking(other, True)
    found += [arm.os.get_blocking(each) for each in (descriptor, duplicate, other)]
    assert found == [True, True, False, False, False, True]
    arm.os.write(other, b" and more")
    assert arm.os.read(descriptor, 20) == b"content and more"
    arm.os.close(duplicate)
    arm.os.close(other)


def test_no_file_is_a_terminal_and_advice_changes_nothing(arm: Arm, descriptor: int) -> None:
    directory = arm.os.open(arm.top, os.O_RDONLY)
    for each in (descriptor, directory):
        assert not arm.os.isatty(each)
        for advice in range(6):
            arm.os.posix_fadvise(each, 0, 0, advice)
        for offset, length, advice in ((0, 0, 6), (0, -1, 0), (0, 0, -1)):
            fails(errno.EINVAL, arm.os.posix_fadvise, each, offset, length, advice)
        arm.os.posix_fadvise(each, -1, 0, os.POSIX_FADV_DONTNEED)
    assert arm.os.read(descriptor, 9) == b"content"
    arm.os.close(directory)


def test_the_file_system_shows_its_size_and_its_limits(arm: Arm, descriptor: int) -> None:
    if not arm.is_simulated and file_system_type(arm.top) != "ext4":
        pytest.skip("the limits are those of ext4")
    for found in (arm.os.statvfs(arm.top), arm.os.statvfs(descriptor), arm.os.fstatvfs(descriptor)):
        assert isinstance(found, os.statvfs_result)
        assert (found.f_bsize, found.f_frsize, found.f_namemax) == (4096, 4096, 255)
        assert 0 < found.f_bavail <= found.f_bfree <= found.f_blocks
        assert 0 < found.f_favail <= found.f_ffree <= found.f_files
        assert not found.f_flag & os.ST_RDONLY
    limits = {name: arm.os.pathconf(arm.path("a"), name) for name in os.pathconf_names}
    assert limits == {
        **dict.fromkeys(os.pathconf_names, -1),
        "PC_ALLOC_SIZE_MIN": 4096, "PC_ASYNC_IO": 1, "PC_CHOWN_RESTRICTED": 1,
        "PC_FILESIZEBITS": 64, "PC_LINK_MAX": 65_000, "PC_MAX_CANON": 255, "PC_MAX_INPUT": 255,
        "PC_NAME_MAX": 255, "PC_NO_TRUNC": 1, "PC_PATH_MAX": 4096, "PC_PIPE_BUF": 4096,
        "PC_REC_MIN_XFER_SIZE": 4096, "PC_REC_XFER_ALIGN": 4096, "PC_VDISABLE": 0,
    }  # fmt: skip
    assert {name: arm.os.fpathconf(descriptor, name) for name in limits} == limits
    assert arm.os.pathconf(arm.top, "PC_ASYNC_IO") == -1
    fails(errno.ENOENT, arm.os.statvfs, arm.path("missing"))
    fails(errno.ENOENT, arm.os.pathconf, arm.path("missing"), "PC_NAME_MAX")


def test_some_limits_are_the_same_whether_the_file_exists_or_not(both: tuple[Arm, Arm]) -> None:
    found = []
    for arm in both:
        put(arm, "a")
        arm.os.symlink("ring", arm.path("ring"))
        closed = arm.os.open(arm.top, os.O_RDONLY)
        arm.os.close(closed)
        paths = (*map(arm.path, ("missing", "missing/b", "a/b", "ring", "x" * 300)), "", "x" * 5000)
        for name in (*sorted(os.pathconf_names), 999):
            calls = [partial(arm.os.pathconf, path, name) for path in paths]
            calls += [partial(arm.os.fpathconf, number, name) for number in (closed, -1)]
            found.append((arm.is_simulated, name, [outcome(arm, call) for call in calls]))
    simulated = [each[1:] for each in found if each[0]]
    assert simulated == [each[1:] for each in found if not each[0]]


def test_there_are_no_extended_attributes(arm: Arm, descriptor: int) -> None:
    arm.os.symlink("missing", arm.path("l"))
    for where in (arm.path("a"), os.fsencode(arm.top), descriptor, None):
        assert arm.os.listxattr(where) == []
    assert arm.os.listxattr(arm.path("l"), follow_symlinks=False) == []
    fails(errno.ENOENT, arm.os.listxattr, arm.path("l"))


def test_an_unlinked_file_exists_until_it_is_closed(arm: Arm) -> None:
    descriptor = arm.os.open(put(arm, "a", b"content"), os.O_RDWR)
    arm.os.unlink(arm.path("a"))
    arm.os.write(descriptor, b"C")
    arm.os.fsync(descriptor)
    status = arm.os.fstat(descriptor)
    assert (status.st_nlink, stat.S_ISREG(status.st_mode)) == (0, True)
    assert arm.os.pread(descriptor, 9, 0) == b"Content"
    arm.os.close(descriptor)
