"""Making, moving and removing names."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

import pytest

from sim.disk.calls.interpreter import LINK_FOLLOWS
from tests.conformance.arms import Arm, file_system_type
from tests.conformance.calls import content, fails, put


def test_unlink_removes_one_name_of_several(arm: Arm) -> None:
    put(arm, "a", b"content")
    arm.os.link(arm.path("a"), arm.path("b"))
    assert arm.os.stat(arm.path("a")).st_nlink == 2
    arm.os.unlink(arm.path("a"))
    assert arm.os.stat(arm.path("b")).st_nlink == 1
    assert content(arm, arm.path("b")) == b"content"
    arm.os.remove(arm.path("b"))
    assert arm.os.listdir(arm.top) == []


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("missing", errno.ENOENT), ("missing/", errno.ENOENT), ("f/", errno.ENOTDIR),
        ("d", errno.EISDIR), ("d/", errno.EISDIR), ("d/.", errno.EISDIR), ("d/..", errno.EISDIR),
        ("f/a", errno.ENOTDIR), ("l/", errno.ENOTDIR),
    ],
)  # fmt: skip
def test_unlink_refuses(arm: Arm, name: str, number: int) -> None:
    put(arm, "f")
    arm.os.mkdir(arm.path("d"))
    arm.os.symlink("d", arm.path("l"))
    assert fails(number, arm.os.unlink, arm.path(name)).filename == arm.path(name)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("missing", errno.ENOENT), ("f", errno.ENOTDIR), ("l", errno.ENOTDIR),
        ("l/", errno.ENOTDIR), ("d", errno.ENOTEMPTY), ("d/.", errno.EINVAL),
        ("d/..", errno.ENOTEMPTY),
    ],
)  # fmt: skip
def test_rmdir_refuses(arm: Arm, name: str, number: int) -> None:
    put(arm, "f")
    arm.os.mkdir(arm.path("d"))
    put(arm, "d/f")
    arm.os.mkdir(arm.path("empty"))
    arm.os.symlink("empty", arm.path("l"))
    fails(number, arm.os.rmdir, arm.path(name))


def test_the_root_can_be_neither_removed_nor_moved(arm: Arm) -> None:
    fails(errno.EBUSY, arm.os.rmdir, "/")
    fails(errno.EISDIR, arm.os.unlink, "/")
    fails(errno.EEXIST, arm.os.mkdir, "/")
    fails(errno.EBUSY, arm.os.rename, "/", arm.path("a"))
    fails(errno.EBUSY, arm.os.rename, put(arm, "a"), "/")


def test_directories_count_their_subdirectories_as_links(arm: Arm) -> None:
    arm.os.mkdir(arm.path("d"), 0o700)
    arm.os.mkdir(arm.path("d/e/"))
    arm.os.mkdir(arm.path("d/f"))
    assert arm.os.stat(arm.path("d")).st_nlink == 4
    arm.os.rename(arm.path("d"), arm.path("D"))
    assert arm.os.stat(arm.path("D")).st_nlink == 4
    arm.os.rename(arm.path("D"), arm.path("d"))
    arm.os.rename(arm.path("d/e"), arm.path("e"))
    assert arm.os.stat(arm.path("d")).st_nlink == 3
    arm.os.rmdir(arm.path("d/f"))
    assert arm.os.stat(arm.path("d")).st_nlink == 2
    assert stat.S_IMODE(arm.os.stat(arm.path("d")).st_mode) == 0o700


@pytest.mark.parametrize("name", ["f", "f/", "d", "d/", "d/.", "d/..", "dangling", "dangling/"])
def test_mkdir_refuses_an_existing_name(arm: Arm, name: str) -> None:
    put(arm, "f")
    arm.os.mkdir(arm.path("d"))
    arm.os.symlink("nowhere", arm.path("dangling"))
    fails(errno.EEXIST, arm.os.mkdir, arm.path(name))


def test_link_refuses_directories_and_names_both_paths(arm: Arm) -> None:
    arm.os.mkdir(arm.path("d"))
    error = fails(errno.EPERM, arm.os.link, arm.path("d"), arm.path("e"))
    assert (error.filename, error.filename2) == (arm.path("d"), arm.path("e"))
    fails(errno.EEXIST, arm.os.link, put(arm, "a"), put(arm, "b"))
    fails(errno.ENOENT, arm.os.link, arm.path("a"), arm.path("missing/b"))
    fails(errno.ENOENT, arm.os.link, arm.path("a"), arm.path("c/"))
    fails(errno.ENOENT, arm.os.link, arm.path("missing"), arm.path("c"))


def test_a_file_has_as_many_names_as_pathconf_allows(arm: Arm) -> None:
    if not arm.is_simulated and file_system_type(arm.top) != "ext4":
        pytest.skip("the limit is that of ext4")
    most = arm.os.pathconf(put(arm, "a"), "PC_LINK_MAX")
    for number in range(most - 1):
        arm.os.link(arm.path("a"), arm.path(str(number)))
    fails(errno.EMLINK, arm.os.link, arm.path("a"), arm.path("b"))
    fails(errno.EEXIST, arm.os.link, arm.path("a"), arm.path("0"))
    assert arm.os.stat(arm.path("0")).st_nlink == most
    arm.os.unlink(arm.path("0"))
    arm.os.link(arm.path("a"), arm.path("b"))


def test_link_follows_a_symbolic_link_beside_a_dir_fd_or_from_3_14_on(
    arm: Arm,
) -> None:
    put(arm, "a")
    arm.os.symlink("a", arm.path("l"))
    directory = arm.os.open(arm.top, os.O_DIRECTORY)
    arm.os.link(arm.path("l"), arm.path("plain"))
    arm.os.link("l", "beside", src_dir_fd=directory, dst_dir_fd=directory)
    arm.os.link("l", "asked", src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    arm.os.close(directory)
    kinds = [
        stat.S_ISLNK(arm.os.lstat(arm.path(name)).st_mode) for name in ("plain", "beside", "asked")
    ]
    assert kinds == [not LINK_FOLLOWS, False, True]


def test_a_symbolic_link_holds_its_text_unchanged(arm: Arm) -> None:
    arm.os.symlink("some/where/..//", arm.path("l"))
    assert arm.os.readlink(arm.path("l")) == "some/where/..//"
    assert arm.os.readlink(os.fsencode(arm.path("l"))) == b"some/where/..//"
    status = arm.os.lstat(arm.path("l"))
    assert (oct(status.st_mode), status.st_size) == ("0o120777", 15)


def test_symlink_and_readlink_refuse(arm: Arm) -> None:
    put(arm, "a")
    fails(errno.EEXIST, arm.os.symlink, "x", arm.path("a"))
    fails(errno.ENOENT, arm.os.symlink, "x", arm.path("new/"))
    fails(errno.ENOENT, arm.os.symlink, "", arm.path("new"))
    fails(errno.ENAMETOOLONG, arm.os.symlink, "x" * 4096, arm.path("new"))
    fails(errno.EINVAL, arm.os.readlink, arm.path("a"))
    fails(errno.EINVAL, arm.os.readlink, arm.top)


def test_readlink_of_an_empty_path_needs_an_open_descriptor(arm: Arm) -> None:
    file, closed = arm.os.open(put(arm, "a"), os.O_RDONLY), arm.os.open(arm.top, os.O_RDONLY)
    arm.os.close(closed)
    for descriptor, number in ((None, errno.ENOENT), (file, errno.ENOENT), (closed, errno.EBADF)):
        assert fails(number, arm.os.readlink, "", dir_fd=descriptor).filename == ""
    arm.os.close(file)


def test_rename_replaces_a_file_that_stays_open(arm: Arm) -> None:
    old = arm.os.open(put(arm, "a", b"old"), os.O_RDONLY)
    arm.os.replace(put(arm, "b", b"new"), arm.path("a"))
    assert content(arm, arm.path("a")) == b"new"
    assert (arm.os.read(old, 9), arm.os.fstat(old).st_nlink) == (b"old", 0)
    assert arm.os.listdir(arm.top) == ["a"]
    arm.os.close(old)


def test_rename_between_two_names_of_one_file_does_nothing(arm: Arm) -> None:
    put(arm, "a")
    arm.os.link(arm.path("a"), arm.path("b"))
    arm.os.rename(arm.path("a"), arm.path("b"))
    assert sorted(arm.os.listdir(arm.top)) == ["a", "b"]


def test_rename_replaces_an_empty_directory_that_stays_open(arm: Arm) -> None:
    arm.os.mkdir(arm.path("d"))
    arm.os.mkdir(arm.path("e"))
    put(arm, "d/a")
    old = arm.os.open(arm.path("e"), os.O_RDONLY)
    arm.os.rename(arm.path("d"), arm.path("e"))
    assert arm.os.listdir(arm.path("e")) == ["a"]
    assert arm.os.listdir(old) == []
    assert arm.os.fstat(old).st_nlink == 0
    fails(errno.ENOENT, arm.os.mkdir, "x", dir_fd=old)
    fails(errno.ENOENT, arm.os.open, "x", os.O_CREAT, dir_fd=old)
    fails(errno.ENOENT, arm.os.rename, arm.path("e/a"), "x", dst_dir_fd=old)
    assert arm.os.stat(".", dir_fd=old).st_nlink == 0
    arm.os.fsync(old)
    arm.os.close(old)


@pytest.mark.parametrize(
    ("source", "target", "number"),
    [
        ("missing", "x", errno.ENOENT),
        ("f", "d", errno.EISDIR),
        ("f", "x/", errno.ENOTDIR),
        ("f/", "x", errno.ENOTDIR),
        ("d", "f", errno.ENOTDIR),
        ("d", "full", errno.ENOTEMPTY),
        ("d", "d/x", errno.EINVAL),
        ("d", "d/sub/x", errno.EINVAL),
        ("full/sub", "full", errno.ENOTEMPTY),
        ("d/.", "x", errno.EBUSY),
        ("f", "d/..", errno.EBUSY),
        ("f", "missing/x", errno.ENOENT),
        ("f", "g/x", errno.ENOTDIR),
        ("f", "x" * 256, errno.ENAMETOOLONG),
        ("", "x", errno.ENOENT),
    ],
)
def test_rename_refuses(arm: Arm, source: str, target: str, number: int) -> None:
    for name in ("d", "d/sub", "full", "full/sub"):
        arm.os.mkdir(arm.path(name))
    put(arm, "f")
    put(arm, "g")
    directory = arm.os.open(arm.top, os.O_DIRECTORY)
    error = fails(number, arm.os.rename, source, target, src_dir_fd=directory, dst_dir_fd=directory)
    assert (error.filename, error.filename2) == (source, target)
    arm.os.close(directory)


def test_a_slash_at_the_end_is_accepted_where_a_directory_moves(arm: Arm) -> None:
    arm.os.mkdir(arm.path("d"))
    arm.os.rename(arm.path("d/"), arm.path("e/"))
    assert arm.os.listdir(arm.top) == ["e"]


def test_a_moved_directory_has_a_new_parent(arm: Arm) -> None:
    arm.os.mkdir(arm.path("d"))
    arm.os.mkdir(arm.path("e"))
    put(arm, "e/here")
    inside = arm.os.open(arm.path("d"), os.O_RDONLY)
    arm.os.rename(arm.path("d"), arm.path("e/d"))
    assert arm.os.stat("../here", dir_fd=inside).st_nlink == 1
    arm.os.close(inside)


def test_making_and_removing_names_changes_the_time_of_the_directory(arm: Arm) -> None:
    arm.os.mkdir(arm.path("d"))
    changes: dict[str, Callable[[], object]] = {
        "create": lambda: put(arm, "d/a"),
        "link": lambda: arm.os.link(arm.path("d/a"), arm.path("d/b")),
        "rename": lambda: arm.os.rename(arm.path("d/a"), arm.path("d/c")),
        "unlink": lambda: arm.os.unlink(arm.path("d/b")),
        "mkdir": lambda: arm.os.mkdir(arm.path("d/e")),
        "rmdir": lambda: arm.os.rmdir(arm.path("d/e")),
        "symlink": lambda: arm.os.symlink("x", arm.path("d/l")),
    }
    for name, change in changes.items():
        arm.os.utime(arm.path("d"), ns=(0, 0))
        change()
        assert arm.os.stat(arm.path("d")).st_mtime_ns > 0, name
    arm.os.utime(arm.path("d"), ns=(0, 0))
    put(arm, "d/c", b"content")
    assert arm.os.stat(arm.path("d")).st_mtime_ns == 0
