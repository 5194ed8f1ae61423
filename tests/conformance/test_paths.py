"""How a path is resolved: links, dots, slashes, lengths, bytes, directory descriptors."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.conformance.arms import Arm
from tests.conformance.calls import CREATE, content, fails, put


@pytest.mark.parametrize(
    "path", ["d/e/../../a", "./a", "d/./../a", "d//e/..///../a", "l/../../a", "d/up/a", "absolute"]
)
def test_every_way_leads_to_the_file(arm: Arm, path: str) -> None:
    put(arm, "a", b"content")
    arm.os.mkdir(arm.path("d"))
    arm.os.mkdir(arm.path("d/e"))
    arm.os.symlink("d/e", arm.path("l"))
    arm.os.symlink("..", arm.path("d/up"))
    arm.os.symlink(arm.path("a"), arm.path("absolute"))
    assert content(arm, arm.path(path)) == b"content"


def test_the_root_is_its_own_parent(arm: Arm) -> None:
    put(arm, "a", b"content")
    assert content(arm, "/../.." + arm.path("a")) == b"content"
    assert arm.os.stat("/..").st_ino == arm.os.stat("/").st_ino


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("missing/a", errno.ENOENT), ("f/a", errno.ENOTDIR), ("f/.", errno.ENOTDIR),
        ("f/..", errno.ENOTDIR), ("f/", errno.ENOTDIR), ("dangling", errno.ENOENT),
        ("dangling/a", errno.ENOENT), ("to_file/", errno.ENOTDIR), ("to_file/a", errno.ENOTDIR),
        ("self", errno.ELOOP), ("self/a", errno.ELOOP), ("ping", errno.ELOOP),
        ("x" * 256, errno.ENAMETOOLONG), ("é" * 128, errno.ENAMETOOLONG),
        ("x" * 256 + "/a", errno.ENAMETOOLONG), ("missing/" + "x" * 256, errno.ENOENT),
        ("x/" * 2048, errno.ENAMETOOLONG),
    ],
)  # fmt: skip
def test_ways_that_lead_nowhere(arm: Arm, path: str, number: int) -> None:
    put(arm, "f")
    for name, target in (
        ("dangling", "nowhere"), ("to_file", "f"), ("self", "self"), ("ping", "pong"),
        ("pong", "ping"),
    ):  # fmt: skip
        arm.os.symlink(target, arm.path(name))
    for call in (arm.os.stat, arm.os.listdir, arm.os.chdir):
        assert fails(number, call, arm.path(path)).filename == arm.path(path)
    for call in (arm.os.mkdir, arm.os.unlink, arm.os.rmdir):
        if number == errno.ENAMETOOLONG:
            fails(number, call, arm.path(path))


def test_a_name_of_255_bytes_and_a_path_of_4095_are_not_too_long(arm: Arm) -> None:
    name = "é" * 127 + "x"
    put(arm, name, b"content")
    path = arm.path(name)
    padded = "/" * (4095 - len(os.fsencode(path))) + path
    assert content(arm, padded) == b"content"
    fails(errno.ENAMETOOLONG, arm.os.stat, "/" + padded)


def test_the_empty_path_is_enoent(arm: Arm) -> None:
    for call in (arm.os.stat, arm.os.unlink, arm.os.mkdir, arm.os.readlink):
        assert fails(errno.ENOENT, call, "").filename == ""


@pytest.mark.parametrize(("links", "number"), [(40, 0), (41, errno.ELOOP)])
def test_forty_links_are_followed_and_no_more(arm: Arm, links: int, number: int) -> None:
    put(arm, "link0", b"content")
    for index in range(links):
        arm.os.symlink(f"link{index}", arm.path(f"link{index + 1}"))
    last = arm.path(f"link{links}")
    if number:
        fails(number, arm.os.stat, last)
        fails(number, arm.os.open, last, os.O_RDONLY)
    else:
        assert content(arm, last) == b"content"
        arm.os.close(arm.os.open(last, os.O_RDONLY))


def test_links_in_the_middle_count_as_well(arm: Arm) -> None:
    arm.os.symlink(".", arm.path("here"))
    put(arm, "a")
    arm.os.stat(arm.path("here/" * 40 + "a"))
    fails(errno.ELOOP, arm.os.stat, arm.path("here/" * 41 + "a"))


def test_lstat_and_a_slash_disagree_about_a_link(arm: Arm) -> None:
    arm.os.mkdir(arm.path("d"))
    arm.os.symlink("d", arm.path("l"))
    kinds = [oct(arm.os.lstat(arm.path(name)).st_mode >> 12) for name in ("l", "l/", "l/.")]
    assert kinds == ["0o12", "0o4", "0o4"]


def test_bytes_and_path_objects_are_paths(arm: Arm) -> None:
    put(arm, "a", b"content")
    assert arm.os.stat(os.fsencode(arm.path("a"))).st_size == 7
    assert arm.os.stat(Path(arm.path("a"))).st_size == 7
    missing = os.fsencode(arm.path("missing"))
    assert fails(errno.ENOENT, arm.os.stat, missing).filename == missing
    long = b"x" * 5000
    assert fails(errno.ENAMETOOLONG, arm.os.stat, long).filename == long
    assert fails(errno.ENAMETOOLONG, arm.os.rename, long, b"a").filename == long


def test_a_name_need_not_be_text(arm: Arm) -> None:
    name = b"\xff\xfe"
    path = os.fsencode(arm.path("")) + name
    arm.os.close(arm.os.open(path, os.O_CREAT | os.O_WRONLY))
    assert arm.os.listdir(os.fsencode(arm.top)) == [name]
    assert arm.os.listdir(arm.top) == [os.fsdecode(name)]
    with pytest.raises(UnicodeEncodeError):
        arm.os.stat("\ud800")


def test_a_relative_path_starts_from_the_directory_descriptor(arm: Arm) -> None:
    arm.os.mkdir(arm.path("d"))
    put(arm, "d/a", b"content")
    put(arm, "f")
    directory, file = (arm.os.open(arm.path(name), os.O_RDONLY) for name in ("d", "f"))
    assert arm.os.stat("a", dir_fd=directory).st_size == 7
    arm.os.rename(arm.path("d"), arm.path("moved"))
    assert arm.os.stat("a", dir_fd=directory).st_size == 7
    assert arm.os.stat(arm.path("moved/a"), dir_fd=file).st_size == 7
    fails(errno.ENOTDIR, arm.os.stat, "a", dir_fd=file)
    fails(errno.ENOTDIR, arm.os.unlink, "a", dir_fd=file)
    arm.os.close(directory)
    arm.os.close(file)
    fails(errno.EBADF, arm.os.stat, "a", dir_fd=directory)
    fails(errno.ENOENT, arm.os.stat, "", dir_fd=directory)


def test_a_path_that_was_used_before_is_walked_again_when_the_way_changed(arm: Arm) -> None:
    for name in ("d", "d/e", "other", "other/e"):
        arm.os.mkdir(arm.path(name))
    put(arm, "d/e/a", b"first")
    put(arm, "other/e/a", b"other")
    path = arm.path("d/e/a")
    assert content(arm, path) == b"first"
    arm.os.rename(arm.path("d"), arm.path("moved"))
    fails(errno.ENOENT, arm.os.stat, path)
    fails(errno.ENOENT, arm.os.rename, path, arm.path("b"))
    fails(errno.ENOENT, arm.os.open, path, CREATE)
    arm.os.symlink("other", arm.path("d"))
    assert content(arm, path) == b"other"
    arm.os.unlink(arm.path("d"))
    arm.os.rename(arm.path("moved"), arm.path("d"))
    assert content(arm, path) == b"first"
    arm.os.unlink(path)
    arm.os.rmdir(arm.path("d/e"))
    fails(errno.ENOENT, arm.os.open, path, CREATE)
    put(arm, "d/e")
    fails(errno.ENOTDIR, arm.os.open, path, CREATE)


def test_o_creat_follows_links_to_the_end_but_not_into_a_slash(arm: Arm) -> None:
    arm.os.mkdir(arm.path("d"))
    for name, target in (("l", "m"), ("m", "d/new"), ("s", "d/"), ("t", "new/"), ("u", "l/")):
        arm.os.symlink(target, arm.path(name))
    arm.os.close(arm.os.open(arm.path("l"), os.O_CREAT | os.O_WRONLY))
    assert arm.os.listdir(arm.path("d")) == ["new"]
    for name in ("s", "t", "u", "l/", "d/.", "d/.."):
        fails(errno.EISDIR, arm.os.open, arm.path(name), os.O_CREAT)
    arm.os.close(arm.os.open(arm.path("s"), os.O_RDONLY))
    fails(errno.ENOENT, arm.os.open, arm.path("t"), os.O_RDONLY)
    fails(errno.ENOTDIR, arm.os.open, arm.path("u"), os.O_RDONLY)
    fails(errno.EEXIST, arm.os.open, arm.path("d/."), os.O_CREAT | os.O_EXCL)
