"""``open`` and ``close``, flag by flag."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from sim.disk.calls.interpreter import LINK_FOLLOWS
from tests.conformance.arms import Arm
from tests.conformance.calls import CREATE, content, fails, put


def test_opening_a_missing_file_without_o_creat_is_enoent(arm: Arm) -> None:
    error = fails(errno.ENOENT, arm.os.open, arm.path("a"), os.O_RDWR)
    assert error.filename == arm.path("a")


def test_a_created_file_is_empty_and_has_its_mode_less_the_umask(arm: Arm) -> None:
    descriptor = arm.os.open(arm.path("a"), CREATE, 0o666)
    status = arm.os.fstat(descriptor)
    arm.os.close(descriptor)
    assert (oct(status.st_mode), status.st_size) == (oct(stat.S_IFREG | 0o644), 0)


def test_umask_returns_the_mask_before_and_shapes_what_is_made_next(arm: Arm) -> None:
    assert arm.os.umask(0o077) == 0o022
    arm.os.mkdir(arm.path("d"))
    assert arm.os.umask(0o022) == 0o077
    assert stat.S_IMODE(arm.os.stat(arm.path("d")).st_mode) == 0o700


def test_o_excl_refuses_what_exists_even_a_dangling_link(arm: Arm) -> None:
    put(arm, "a")
    arm.os.symlink("nowhere", arm.path("l"))
    for name in ("a", "l"):
        fails(errno.EEXIST, arm.os.open, arm.path(name), CREATE | os.O_EXCL)


def test_o_creat_through_a_dangling_link_makes_its_target(arm: Arm) -> None:
    arm.os.symlink("target", arm.path("l"))
    arm.os.close(arm.os.open(arm.path("l"), CREATE))
    assert stat.S_ISREG(arm.os.lstat(arm.path("target")).st_mode)


def test_o_trunc_empties_the_file_even_for_a_reader(arm: Arm) -> None:
    path = put(arm, "a", b"content")
    arm.os.close(arm.os.open(path, os.O_RDONLY | os.O_TRUNC))
    assert content(arm, path) == b""


def test_o_append_writes_at_the_end_wherever_the_offset_is(arm: Arm) -> None:
    path = put(arm, "a", b"one")
    descriptor = arm.os.open(path, os.O_RDWR | os.O_APPEND)
    arm.os.lseek(descriptor, 0, os.SEEK_SET)
    arm.os.write(descriptor, b"two")
    assert arm.os.lseek(descriptor, 0, os.SEEK_CUR) == 6
    arm.os.pwrite(descriptor, b"three", 0)
    arm.os.close(descriptor)
    assert content(arm, path) == b"onetwothree"


def test_o_directory_refuses_a_file(arm: Arm) -> None:
    fails(errno.ENOTDIR, arm.os.open, put(arm, "a"), os.O_DIRECTORY)


def test_o_creat_with_o_directory_is_einval(arm: Arm) -> None:
    fails(errno.EINVAL, arm.os.open, arm.path("a"), CREATE | os.O_DIRECTORY)


def test_o_nofollow_refuses_a_link_at_the_end_only(arm: Arm) -> None:
    arm.os.mkdir(arm.path("d"))
    put(arm, "d/a")
    arm.os.symlink("d", arm.path("l"))
    fails(errno.ELOOP, arm.os.open, arm.path("l"), os.O_NOFOLLOW)
    fails(errno.ENOTDIR, arm.os.open, arm.path("l"), os.O_NOFOLLOW | os.O_DIRECTORY)
    arm.os.close(arm.os.open(arm.path("l/a"), os.O_NOFOLLOW))


def test_a_slash_follows_a_chain_of_links_to_a_directory_despite_o_nofollow(arm: Arm) -> None:
    arm.os.mkdir(arm.path("d"))
    put(arm, "f")
    for name, target in (("l", "d"), ("l2", "l"), ("l3", "l2/"), ("to_f", "f"), ("ll", "ll")):
        arm.os.symlink(target, arm.path(name))
    for name in ("l/", "l2/", "l3/", "l2//"):
        descriptor = arm.os.open(arm.path(name), os.O_NOFOLLOW)
        assert stat.S_ISDIR(arm.os.fstat(descriptor).st_mode)
        arm.os.close(descriptor)
    for name, number in (("to_f/", errno.ENOTDIR), ("ll/", errno.ELOOP), ("l2", errno.ELOOP)):
        fails(number, arm.os.open, arm.path(name), os.O_NOFOLLOW)


@pytest.mark.parametrize("flags", [os.O_WRONLY, os.O_RDWR, os.O_TRUNC, CREATE])
def test_a_directory_cannot_be_opened_for_writing(arm: Arm, flags: int) -> None:
    arm.os.mkdir(arm.path("d"))
    fails(errno.EISDIR, arm.os.open, arm.path("d"), flags)


def test_o_creat_with_a_slash_at_the_end_is_eisdir(arm: Arm) -> None:
    fails(errno.EISDIR, arm.os.open, arm.path("a/"), CREATE)


def test_an_unnamed_file_has_no_links_until_it_is_given_a_name(arm: Arm) -> None:
    descriptor = arm.os.open(arm.top, os.O_TMPFILE | os.O_RDWR, 0o600)
    arm.os.write(descriptor, b"content")
    assert arm.os.fstat(descriptor).st_nlink == 0
    assert arm.os.listdir(arm.top) == []
    directory = arm.os.open(arm.top, os.O_DIRECTORY)
    if not LINK_FOLLOWS:
        # Only with a dir_fd does CPython ask Linux to follow the link in /proc.
        fails(errno.EXDEV, arm.os.link, f"/proc/self/fd/{descriptor}", arm.path("a"))
        # The other file system is noticed after all errors of the new name.
        for name, number in ((".", errno.EEXIST), ("a/", errno.ENOENT), ("a/b", errno.ENOENT)):
            fails(number, arm.os.link, f"/proc/self/fd/{descriptor}", arm.path(name))
    arm.os.link(f"/proc/self/fd/{descriptor}", arm.path("a"), src_dir_fd=directory)
    assert arm.os.fstat(descriptor).st_nlink == 1
    arm.os.close(descriptor)
    arm.os.close(directory)
    assert content(arm, arm.path("a")) == b"content"
    gone = f"/proc/self/fd/{descriptor}"
    fails(errno.ENOENT, arm.os.link, gone, arm.path("b"))


def test_an_unnamed_file_with_o_excl_and_an_unlinked_one_get_no_name(arm: Arm) -> None:
    directory = arm.os.open(arm.top, os.O_DIRECTORY)
    exclusive = arm.os.open(arm.top, os.O_TMPFILE | os.O_RDWR | os.O_EXCL)
    unlinked = arm.os.open(put(arm, "a"), os.O_RDWR)
    arm.os.unlink(arm.path("a"))
    was_named = arm.os.open(arm.top, os.O_TMPFILE | os.O_RDWR)
    arm.os.link(f"/proc/self/fd/{was_named}", arm.path("a"), src_dir_fd=directory)
    arm.os.unlink(arm.path("a"))
    put(arm, "c")
    for descriptor in (exclusive, unlinked, was_named):
        source = f"/proc/self/fd/{descriptor}"
        fails(errno.ENOENT, arm.os.link, source, arm.path("b"), src_dir_fd=directory)
        # That it has no name is noticed after all errors of the new name.
        fails(errno.EEXIST, arm.os.link, source, arm.path("c"), src_dir_fd=directory)
        fails(errno.ENOTDIR, arm.os.link, source, arm.path("c/b"), src_dir_fd=directory)
    source = f"/proc/self/fd/{directory}"
    fails(errno.EPERM, arm.os.link, source, arm.path("b"), src_dir_fd=directory)
    for descriptor in (exclusive, unlinked, was_named, directory):
        arm.os.close(descriptor)


@pytest.mark.parametrize("flags", [os.O_TMPFILE, os.O_TMPFILE | CREATE])
def test_an_unnamed_file_must_be_writable_and_goes_without_o_creat(arm: Arm, flags: int) -> None:
    fails(errno.EINVAL, arm.os.open, arm.top, flags)


def test_an_unnamed_file_needs_a_directory(arm: Arm) -> None:
    fails(errno.ENOTDIR, arm.os.open, put(arm, "a"), os.O_TMPFILE | os.O_RDWR)
