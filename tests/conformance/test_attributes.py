"""Mode, owner and times, and how ``stat`` and ``access`` report them."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

import pytest

from sim.disk.calls.interpreter import UTIME_NAMES_FILE
from tests.conformance.arms import NOBODY, Arm
from tests.conformance.calls import CREATE, fails, put

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root changes owners")


def test_stat_reports_the_type_and_the_same_inode_for_every_name(arm: Arm) -> None:
    put(arm, "a", b"content")
    arm.os.link(arm.path("a"), arm.path("b"))
    arm.os.symlink("a", arm.path("l"))
    by_path, by_link = arm.os.stat(arm.path("a")), arm.os.stat(arm.path("l"))
    assert os.path.samestat(by_path, by_link)
    assert os.path.samestat(by_path, arm.os.stat(arm.path("b")))
    assert not os.path.samestat(by_path, arm.os.lstat(arm.path("l")))
    assert not os.path.samestat(by_path, arm.os.stat(arm.top))
    descriptor = arm.os.open(arm.path("a"), os.O_RDONLY)
    assert by_path == arm.os.fstat(descriptor) == arm.os.stat(descriptor)
    arm.os.close(descriptor)
    kinds = [stat.filemode(arm.os.lstat(path).st_mode)[0] for path in (arm.path("l"), arm.top)]
    assert kinds == ["l", "d"]


def test_chmod_changes_the_permission_bits_alone(arm: Arm) -> None:
    path = put(arm, "a")
    arm.os.chmod(path, stat.S_IFDIR | 0o1604)
    assert oct(arm.os.stat(path).st_mode) == oct(stat.S_IFREG | 0o1604)
    descriptor = arm.os.open(path, os.O_RDONLY)
    arm.os.fchmod(descriptor, 0o640)
    arm.os.chmod(descriptor, 0o641)
    arm.os.close(descriptor)
    arm.os.symlink("a", arm.path("l"))
    arm.os.chmod(arm.path("l"), 0o600)
    modes = [stat.S_IMODE(arm.os.lstat(arm.path(name)).st_mode) for name in ("a", "l")]
    assert modes == [0o600, 0o777]


@pytest.mark.parametrize(
    ("given", "expected_ns"),
    [
        ({"ns": (5, 1_234_567_890_123_456_789)}, (5, 1_234_567_890_123_456_789)),
        ({"times": (1, 2)}, (1_000_000_000, 2_000_000_000)),
        ({"times": (1.25, 1e9 + 0.5)}, (1_250_000_000, 1_000_000_000_500_000_000)),
        ({"ns": (-1, -2_000_000_001)}, (-1, -2_000_000_001)),
        ({"times": (-0.25, -1.5)}, (-250_000_000, -1_500_000_000)),
    ],
)
def test_utime_sets_both_times(
    arm: Arm, given: dict[str, Any], expected_ns: tuple[int, int]
) -> None:
    path = put(arm, "a")
    arm.os.utime(path, **given)
    status = arm.os.stat(path)
    assert (status.st_atime_ns, status.st_mtime_ns) == expected_ns
    seconds, remainder_ns = divmod(expected_ns[1], 10**9)
    assert status.st_mtime == seconds + 1e-9 * remainder_ns
    assert status[stat.ST_MTIME] == seconds


def test_utime_without_times_sets_them_to_now(arm: Arm) -> None:
    path = put(arm, "a")
    arm.os.utime(path, ns=(0, 0))
    arm.os.utime(path)
    status = arm.os.stat(path)
    assert status.st_atime_ns == status.st_mtime_ns > 10**18


def test_utime_can_leave_the_target_of_a_link_alone(arm: Arm) -> None:
    path = put(arm, "a")
    arm.os.utime(path, ns=(1, 1))
    arm.os.symlink("a", arm.path("l"))
    arm.os.utime(arm.path("l"), ns=(2, 2), follow_symlinks=False)
    assert [arm.os.lstat(arm.path(name)).st_mtime_ns for name in ("a", "l")] == [1, 2]
    arm.os.utime(arm.path("l"), ns=(3, 3))
    assert [arm.os.lstat(arm.path(name)).st_mtime_ns for name in ("a", "l")] == [3, 2]


def test_utime_takes_seconds_or_nanoseconds(arm: Arm) -> None:
    with pytest.raises(ValueError, match="not both"):
        arm.os.utime(put(arm, "a"), (1, 1), ns=(1, 1))


def test_the_times_of_a_new_file_agree(arm: Arm) -> None:
    descriptor = arm.os.open(arm.path("a"), CREATE)
    status = arm.os.fstat(descriptor)
    arm.os.close(descriptor)
    assert status.st_atime_ns == status.st_mtime_ns == status.st_ctime_ns


def test_ctime_never_decreases(arm: Arm) -> None:
    path = put(arm, "a")
    before = arm.os.stat(path).st_ctime_ns
    arm.os.utime(path, ns=(0, 0))
    arm.os.link(path, arm.path("b"))
    descriptor = arm.os.open(path, os.O_RDONLY)
    arm.os.rename(put(arm, "c"), path)
    assert arm.os.fstat(descriptor).st_ctime_ns >= before
    arm.os.close(descriptor)


@as_root
def test_chown_clears_setuid_and_the_setgid_of_executables(arm: Arm) -> None:
    path = put(arm, "a")
    for mode, expected in ((0o6755, 0o755), (0o6644, 0o2644)):
        arm.os.chmod(path, mode)
        arm.os.chown(path, 7, -1)
        assert stat.S_IMODE(arm.os.stat(path).st_mode) == expected
    arm.os.chown(path, -1, 8)
    status = arm.os.stat(path)
    assert (status.st_uid, status.st_gid) == (7, 8)
    arm.os.chmod(arm.top, 0o2777)
    arm.os.chown(arm.top, 7, 8)
    assert stat.S_IMODE(arm.os.stat(arm.top).st_mode) == 0o2777


@as_root
def test_lchown_leaves_the_target_alone_and_fchown_does_not_need_a_name(arm: Arm) -> None:
    put(arm, "a")
    arm.os.symlink("a", arm.path("l"))
    arm.os.lchown(arm.path("l"), 7, 8)
    descriptor = arm.os.open(arm.path("a"), os.O_RDONLY)
    arm.os.fchown(descriptor, NOBODY, -1)
    arm.os.close(descriptor)
    assert [arm.os.lstat(arm.path(name)).st_uid for name in ("a", "l")] == [NOBODY, 7]


@as_root
def test_a_setgid_directory_passes_on_its_group_and_its_bit(arm: Arm) -> None:
    arm.os.mkdir(arm.path("d"))
    arm.os.chown(arm.path("d"), -1, 8)
    arm.os.chmod(arm.path("d"), 0o2755)
    arm.os.mkdir(arm.path("d/sub"), 0o700)
    put(arm, "d/a")
    found = [arm.os.stat(arm.path(name)) for name in ("d/sub", "d/a")]
    assert [status.st_gid for status in found] == [8, 8]
    assert [oct(stat.S_IMODE(status.st_mode)) for status in found] == ["0o2700", "0o644"]


def test_access_reports_the_permissions_that_would_be_granted(arm: Arm) -> None:
    path = put(arm, "a")
    arm.os.chmod(path, 0o644)
    assert arm.os.access(path, os.F_OK)
    assert arm.os.access(path, os.R_OK | os.W_OK)
    assert not arm.os.access(path, os.X_OK)
    assert arm.os.access(arm.top, os.R_OK | os.X_OK)
    assert not arm.os.access(arm.path("missing"), os.F_OK)
    assert not arm.os.access(path, 8)
    arm.os.symlink("missing", arm.path("l"))
    assert not arm.os.access(arm.path("l"), os.F_OK)
    assert arm.os.access(arm.path("l"), os.F_OK, follow_symlinks=False)


def test_errors_of_path_calls_name_the_path_those_of_utime_from_3_13_on(
    arm: Arm,
) -> None:
    missing = arm.path("missing")
    for call, *arguments in ((arm.os.chmod, 0), (arm.os.chown, 0, 0), (arm.os.truncate, 0)):
        assert fails(errno.ENOENT, call, missing, *arguments).filename == missing
    shown = missing if UTIME_NAMES_FILE else None
    assert fails(errno.ENOENT, arm.os.utime, missing).filename == shown
