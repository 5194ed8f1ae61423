"""Permission bits, for users other than root."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.arms import NOBODY, Arm, as_other_user
from tests.conformance.calls import CREATE, content, fails, put

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")


def test_a_file_without_bits_can_be_neither_read_nor_written(user: Arm) -> None:
    path = put(user, "a")
    user.os.chmod(path, 0o000)
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_TRUNC, CREATE):
        fails(errno.EACCES, user.os.open, path, flags)
    fails(errno.EACCES, user.os.truncate, path, 0)
    assert not user.os.access(path, os.R_OK, effective_ids=True)
    user.os.chmod(path, 0o400)
    user.os.close(user.os.open(path, os.O_RDONLY))
    fails(errno.EACCES, user.os.open, path, os.O_RDONLY | os.O_TRUNC)


def test_permission_bits_are_checked_when_a_file_is_opened_and_not_later(user: Arm) -> None:
    descriptor = user.os.open(user.path("a"), CREATE, 0o000)
    user.os.write(descriptor, b"content")
    user.os.close(descriptor)
    fails(errno.EACCES, user.os.open, user.path("a"), os.O_RDONLY)
    user.os.chmod(user.path("a"), 0o400)
    assert content(user, user.path("a")) == b"content"


def test_a_directory_without_search_permission_hides_its_content(user: Arm) -> None:
    user.os.mkdir(user.path("d"))
    put(user, "d/a")
    user.os.chmod(user.path("d"), 0o600)
    fails(errno.EACCES, user.os.stat, user.path("d/a"))
    fails(errno.EACCES, user.os.stat, user.path("d/missing/b"))
    fails(errno.EACCES, user.os.chdir, user.path("d"))
    fails(errno.EACCES, user.os.open, user.path("d/a"), CREATE)
    assert user.os.listdir(user.path("d")) == ["a"]
    user.os.chmod(user.path("d"), 0o300)
    assert user.os.stat(user.path("d/a")).st_size == 0
    fails(errno.EACCES, user.os.listdir, user.path("d"))
    fails(errno.EACCES, user.os.open, user.path("d"), os.O_RDONLY)
    user.os.chmod(user.path("d"), 0o700)


def test_a_directory_without_write_permission_keeps_its_names(user: Arm) -> None:
    user.os.mkdir(user.path("d"))
    put(user, "d/a")
    user.os.mkdir(user.path("d/e"))
    put(user, "b")
    user.os.chmod(user.path("d"), 0o500)
    new, old = user.path("d/new"), user.path("d/a")
    fails(errno.EACCES, user.os.open, new, CREATE)
    fails(errno.EACCES, user.os.open, user.path("d"), os.O_TMPFILE | os.O_RDWR)
    fails(errno.EACCES, user.os.mkdir, new)
    fails(errno.EACCES, user.os.symlink, "x", new)
    fails(errno.EACCES, user.os.link, user.path("b"), new)
    fails(errno.EACCES, user.os.unlink, old)
    fails(errno.EACCES, user.os.rmdir, user.path("d/e"))
    fails(errno.EACCES, user.os.rename, old, user.path("c"))
    fails(errno.EACCES, user.os.rename, user.path("b"), new)
    fails(errno.EACCES, user.os.rename, user.path("b"), old)
    # An existing name is reported before a missing permission.
    fails(errno.EEXIST, user.os.mkdir, old)
    user.os.close(user.os.open(old, CREATE))
    user.os.chmod(user.path("d"), 0o700)


def test_a_directory_moves_to_another_only_if_it_can_be_written_itself(user: Arm) -> None:
    user.os.mkdir(user.path("d"))
    user.os.mkdir(user.path("d/e"), 0o500)
    user.os.rename(user.path("d/e"), user.path("d/f"))
    fails(errno.EACCES, user.os.rename, user.path("d/f"), user.path("f"))


def test_only_root_changes_the_owner_of_a_file(user: Arm) -> None:
    path = put(user, "a")
    status = user.os.stat(path)
    user.os.chown(path, status.st_uid, status.st_gid)
    fails(errno.EPERM, user.os.chown, path, status.st_uid + 1, -1)
    fails(errno.EPERM, user.os.chown, path, -1, status.st_gid + 1)


@as_root
def test_only_the_owner_changes_attributes(arm: Arm) -> None:
    path = put(arm, "a")
    with as_other_user(arm) as other:
        fails(errno.EPERM, other.os.chmod, path, 0o777)
        fails(errno.EPERM, other.os.chown, path, -1, 0)
        fails(errno.EPERM, other.os.utime, path, ns=(0, 0))
        fails(errno.EACCES, other.os.utime, path)
        fails(errno.EPERM, other.os.open, path, os.O_RDONLY | os.O_NOATIME)
        other.os.chown(path, -1, -1)
        descriptor = other.os.open(path, os.O_RDONLY)
        fails(errno.EPERM, other.os.fchmod, descriptor, 0o777)
        fails(errno.EPERM, other.os.fchown, descriptor, 1, -1)
        other.os.close(descriptor)
    arm.os.chmod(path, 0o666)
    with as_other_user(arm) as other:
        other.os.utime(path)
        fails(errno.EPERM, other.os.utime, path, ns=(0, 0))


def set_flags(arm: Arm, descriptor: int, flags: int) -> int:
    """Set the status flags of a descriptor (``F_SETFL``), and return them all."""
    if arm.is_simulated:
        arm.os.set_status_flags(descriptor, flags)
        return int(arm.os.status_flags(descriptor))
    arm.fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)
    return int(arm.fcntl.fcntl(descriptor, fcntl.F_GETFL))


@as_root
def test_only_the_owner_adds_the_flag_that_keeps_the_time_of_access(arm: Arm) -> None:
    descriptor = arm.os.open(put(arm, "a"), os.O_RDWR)
    assert set_flags(arm, descriptor, os.O_NOATIME) & os.O_NOATIME
    assert not set_flags(arm, descriptor, 0) & os.O_NOATIME
    arm.os.close(descriptor)
    arm.os.chmod(arm.path("a"), 0o666)
    with as_other_user(arm) as other:
        descriptor = other.os.open(arm.path("a"), os.O_RDWR)
        fails(errno.EPERM, set_flags, other, descriptor, os.O_NOATIME | os.O_APPEND)
        assert not set_flags(other, descriptor, 0) & os.O_APPEND
        other.os.close(descriptor)


@as_root
def test_the_sticky_bit_protects_the_files_of_others(arm: Arm) -> None:
    path = put(arm, "a")
    arm.os.mkdir(arm.path("d"))
    arm.os.chmod(arm.top, 0o1777)
    with as_other_user(arm) as other:
        own = put(other, "own")
        fails(errno.EPERM, other.os.unlink, path)
        fails(errno.EPERM, other.os.rmdir, arm.path("d"))
        fails(errno.EPERM, other.os.rename, path, arm.path("b"))
        fails(errno.EPERM, other.os.rename, own, path)
        other.os.rename(own, arm.path("b"))
        other.os.unlink(arm.path("b"))


@as_root
def test_group_and_other_bits_apply_to_their_class(arm: Arm) -> None:
    path = put(arm, "a")
    for mode, reads, writes in ((0o604, True, False), (0o602, False, True), (0o660, False, False)):
        arm.os.chmod(path, mode)
        with as_other_user(arm) as other:
            granted = [other.os.access(path, bit, effective_ids=True) for bit in (os.R_OK, os.W_OK)]
        assert granted == [reads, writes], oct(mode)
    arm.os.chmod(path, 0o646)
    arm.os.chown(path, -1, NOBODY)
    with as_other_user(arm) as other:
        assert not other.os.access(path, os.W_OK, effective_ids=True)


def _modes(arm: Arm, *names: str) -> list[str]:
    return [oct(stat.S_IMODE(arm.os.stat(arm.path(name)).st_mode)) for name in names]


@as_root
def test_chmod_by_an_owner_of_another_group_clears_setgid(arm: Arm) -> None:
    arm.os.chown(put(arm, "foreign"), NOBODY, 8)
    arm.os.chown(put(arm, "own"), NOBODY, NOBODY)
    arm.os.mkdir(arm.path("d"))
    arm.os.chown(arm.path("d"), NOBODY, 8)
    with as_other_user(arm) as other:
        for name in ("foreign", "own", "d"):
            other.os.chmod(arm.path(name), 0o6755)
        assert _modes(other, "foreign", "own", "d") == ["0o4755", "0o6755", "0o4755"]
        descriptor = other.os.open(arm.path("foreign"), os.O_RDONLY)
        other.os.fchmod(descriptor, 0o2644)
        other.os.close(descriptor)
        assert _modes(other, "foreign") == ["0o644"]


@as_root
@pytest.mark.parametrize(
    ("mode", "umask", "expected"),
    [(0o2775, 0, "0o775"), (0o2775, 0o077, "0o700"), (0o2765, 0, "0o2765"), (0o4775, 0, "0o4775")],
)
def test_an_executable_in_a_setgid_directory_of_another_group_is_not_setgid(
    arm: Arm, mode: int, umask: int, expected: str
) -> None:
    arm.os.mkdir(arm.path("d"))
    arm.os.chown(arm.path("d"), -1, 8)
    arm.os.chmod(arm.path("d"), 0o2777)
    with as_other_user(arm) as other:
        before = other.os.umask(umask)
        other.os.close(other.os.open(arm.path("d/a"), CREATE, mode))
        unnamed = other.os.open(arm.path("d"), os.O_TMPFILE | os.O_RDWR, mode)
        found = oct(stat.S_IMODE(other.os.fstat(unnamed).st_mode))
        other.os.close(unnamed)
        other.os.mkdir(arm.path("d/e"))
        other.os.umask(before)
    assert [*_modes(arm, "d/a"), found] == [expected, expected]
    assert arm.os.stat(arm.path("d/a")).st_gid == 8
    assert arm.os.stat(arm.path("d/e")).st_mode & stat.S_ISGID


CHANGES: dict[str, Callable[[Arm, str, int], object]] = {
    "write": lambda other, path, descriptor: other.os.write(descriptor, b"x"),
    "pwrite": lambda other, path, descriptor: other.os.pwrite(descriptor, b"x", 9),
    "writev": lambda other, path, descriptor: other.os.writev(descriptor, [b"x"]),
    "ftruncate": lambda other, path, descriptor: other.os.ftruncate(descriptor, 7),
    "truncate": lambda other, path, descriptor: other.os.truncate(path, 3),
    "fallocate": lambda other, path, descriptor: other.os.posix_fallocate(descriptor, 0, 9),
    "O_TRUNC": lambda other, path, descriptor: other.os.close(
        other.os.open(path, os.O_RDONLY | os.O_TRUNC)
    ),
    "sendfile": lambda other, path, descriptor: other.os.sendfile(descriptor, descriptor, 0, 1),
    "copy_file_range": lambda other, path, descriptor: other.os.copy_file_range(
        descriptor, descriptor, 1, 0, 5
    ),
}


@as_root
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_content_clears_setuid_and_setgid_unless_root_makes_it(
    arm: Arm, change: Callable[[Arm, str, int], object]
) -> None:
    path = put(arm, "a", b"content")
    for gid, mode, expected in (
        (8, 0o6777, "0o777"), (8, 0o2766, "0o766"), (NOBODY, 0o6767, "0o2767"),
        (NOBODY, 0o2777, "0o777"), (8, 0o777, "0o777"),
    ):  # fmt: skip
        arm.os.chown(path, 0, gid)
        arm.os.chmod(path, mode)
        with as_other_user(arm) as other:
            descriptor = other.os.open(path, os.O_RDWR)
            change(other, path, descriptor)
            other.os.close(descriptor)
        assert _modes(arm, "a") == [expected], oct(mode)
        arm.os.chmod(path, mode)
        descriptor = arm.os.open(path, os.O_RDWR)
        change(arm, path, descriptor)
        arm.os.close(descriptor)
        assert _modes(arm, "a") == [oct(mode)]


@as_root
def test_an_empty_write_and_a_read_keep_setuid(arm: Arm) -> None:
    arm.os.chmod(put(arm, "a", b"content"), 0o6777)
    with as_other_user(arm) as other:
        descriptor = other.os.open(arm.path("a"), os.O_RDWR)
        other.os.write(descriptor, b"")
        other.os.read(descriptor, 3)
        other.os.fsync(descriptor)
        other.os.close(descriptor)
    assert _modes(arm, "a") == ["0o6777"]


@as_root
def test_a_chown_that_changes_nothing_needs_the_owner_only_where_it_clears_setuid(
    arm: Arm,
) -> None:
    path = put(arm, "a")
    for mode, allowed in ((0o755, True), (0o4755, False), (0o2755, False), (0o2745, False)):
        arm.os.chmod(path, mode)
        with as_other_user(arm) as other:
            if allowed:
                other.os.chown(path, -1, -1)
            else:
                fails(errno.EPERM, other.os.chown, path, -1, -1)
        assert _modes(arm, "a") == [oct(mode)]


@as_root
def test_a_hard_link_to_a_file_of_another_user_needs_access(arm: Arm) -> None:
    if not arm.is_simulated and Path("/proc/sys/fs/protected_hardlinks").read_text() != "1\n":
        pytest.skip("fs.protected_hardlinks is off")
    path = put(arm, "a")
    for mode, allowed in ((0o644, False), (0o666, True), (0o4666, False), (0o2676, False)):
        arm.os.chmod(path, mode)
        with as_other_user(arm) as other:
            if allowed:
                other.os.link(path, arm.path("b"))
            else:
                fails(errno.EPERM, other.os.link, path, arm.path("c"))
    arm.os.symlink("a", arm.path("l"))
    with as_other_user(arm) as other:
        fails(errno.EPERM, other.os.link, arm.path("l"), arm.path("c"), follow_symlinks=False)


@as_root
@pytest.mark.parametrize(
    ("mode", "owner", "number"),
    [
        (0o1777, 8, errno.EACCES), (0o1772, 8, errno.EACCES), (0o1775, 8, errno.ELOOP),
        (0o0777, 8, errno.ELOOP), (0o1777, 7, errno.ELOOP), (0o1777, 0, errno.ELOOP),
    ],
)  # fmt: skip
def test_o_creat_meets_the_link_of_another_user_in_a_shared_directory(
    arm: Arm, mode: int, owner: int, number: int
) -> None:
    arm.os.mkdir(arm.path("d"))
    arm.os.chown(arm.path("d"), 7, 7)
    arm.os.chmod(arm.path("d"), mode)
    arm.os.symlink("x", arm.path("d/l"))
    arm.os.chown(arm.path("d/l"), owner, owner, follow_symlinks=False)
    flags = os.O_RDWR | os.O_NOFOLLOW
    fails(number, arm.os.open, arm.path("d/l"), flags | os.O_CREAT)
    fails(errno.EEXIST, arm.os.open, arm.path("d/l"), flags | os.O_CREAT | os.O_EXCL)
    fails(errno.ELOOP, arm.os.open, arm.path("d/l"), flags)
