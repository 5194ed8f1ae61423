"""Listing directories, and the current one."""

from __future__ import annotations

import errno
import os

import pytest

from tests.conformance.arms import Arm
from tests.conformance.calls import fails, put


@pytest.fixture
def came_from(arm: Arm) -> object:
    """Restore the current directory; the real arm changes that of the whole process."""
    before = os.getcwd()
    yield None
    os.chdir(before)


def test_listdir_gives_every_name_once_in_the_type_of_the_path(arm: Arm) -> None:
    for name in ("b", "a", "é"):
        put(arm, name)
    arm.os.mkdir(arm.path("d"))
    directory = arm.os.open(arm.top, os.O_RDONLY)
    assert sorted(arm.os.listdir(arm.top)) == ["a", "b", "d", "é"]
    assert sorted(arm.os.listdir(directory)) == ["a", "b", "d", "é"]
    assert sorted(arm.os.listdir(os.fsencode(arm.top))) == [b"a", b"b", b"d", "é".encode()]
    assert arm.os.listdir(arm.path("d")) == []
    arm.os.close(directory)


def test_listdir_needs_a_directory(arm: Arm) -> None:
    path = put(arm, "a")
    for call in (arm.os.listdir, arm.os.scandir):
        assert fails(errno.ENOTDIR, call, path).filename == path
        fails(errno.ENOENT, call, arm.path("missing"))
    descriptor = arm.os.open(path, os.O_RDONLY)
    fails(errno.ENOTDIR, arm.os.listdir, descriptor)
    arm.os.close(descriptor)


def test_entries_have_their_type_and_their_inode(arm: Arm) -> None:
    put(arm, "a", b"content")
    arm.os.mkdir(arm.path("d"))
    for name, target in (("to_a", "a"), ("to_d", "d"), ("dangling", "nowhere")):
        arm.os.symlink(target, arm.path(name))
    with arm.os.scandir(arm.top) as entries:
        found = {entry.name: entry for entry in entries}
    kinds = {
        name: (entry.is_file(), entry.is_dir(), entry.is_symlink()) for name, entry in found.items()
    }
    assert kinds == {
        "a": (True, False, False),
        "d": (False, True, False),
        "to_a": (True, False, True),
        "to_d": (False, True, True),
        "dangling": (False, False, True),
    }
    assert not found["to_d"].is_dir(follow_symlinks=False)
    assert not found["to_a"].is_file(follow_symlinks=False)
    assert found["a"].inode() == arm.os.stat(arm.path("a")).st_ino
    assert found["to_a"].stat().st_size == found["a"].stat().st_size == 7
    assert found["to_a"].stat(follow_symlinks=False).st_size == 1
    assert os.fspath(found["a"]) == found["a"].path == arm.path("a")
    assert repr(found["a"]) == "<DirEntry 'a'>"
    fails(errno.ENOENT, found["dangling"].stat)


def test_an_entry_caches_its_first_status(arm: Arm) -> None:
    put(arm, "a")
    with arm.os.scandir(arm.top) as entries:
        entry = next(entries)
    assert entry.stat().st_size == 0
    put(arm, "a", b"content")
    assert entry.stat().st_size == 0


def test_scandir_gives_paths_in_the_type_of_its_argument(arm: Arm) -> None:
    put(arm, "a")
    directory = arm.os.open(arm.top, os.O_RDONLY)
    for argument, expected in (
        (os.fsencode(arm.top), (b"a", os.fsencode(arm.path("a")))),
        (arm.top + "/", ("a", arm.path("a"))),
        (directory, ("a", "a")),
    ):
        with arm.os.scandir(argument) as entries:
            assert [(entry.name, entry.path) for entry in entries] == [expected]
    with arm.os.scandir(directory) as entries:
        entry = next(entries)
    assert entry.stat().st_ino == entry.inode()
    arm.os.close(directory)


def test_a_closed_scandir_yields_nothing(arm: Arm) -> None:
    put(arm, "a")
    entries = arm.os.scandir(arm.top)
    entries.close()
    assert list(entries) == []


@pytest.mark.usefixtures("came_from")
def test_chdir_moves_the_start_of_relative_paths(arm: Arm) -> None:
    arm.os.mkdir(arm.path("d"))
    put(arm, "d/a", b"content")
    arm.os.chdir(arm.path("d"))
    assert arm.os.getcwd() == arm.path("d")
    assert arm.os.getcwdb() == os.fsencode(arm.path("d"))
    assert arm.os.stat("a").st_size == 7
    assert arm.os.listdir() == ["a"]
    assert [entry.path for entry in arm.os.scandir()] == ["./a"]
    arm.os.rename(arm.path("d"), arm.path("moved"))
    assert arm.os.getcwd() == arm.path("moved")
    arm.os.chdir("..")
    assert arm.os.getcwd() == arm.top
    arm.os.chdir("/")
    assert arm.os.getcwd() == "/"


@pytest.mark.usefixtures("came_from")
def test_a_relative_path_that_was_used_before_starts_from_the_new_directory(arm: Arm) -> None:
    for name, content in (("d", b"one"), ("e", b"three")):
        arm.os.mkdir(arm.path(name))
        put(arm, f"{name}/a", content)
    sizes = []
    for name in ("d", "e", "d"):
        arm.os.chdir(arm.path(name))
        sizes.append(arm.os.stat("a").st_size)
    assert sizes == [3, 5, 3]


@pytest.mark.usefixtures("came_from")
def test_chdir_takes_a_descriptor_and_fchdir_does_too(arm: Arm) -> None:
    put(arm, "a")
    directory, file = arm.os.open(arm.top, os.O_RDONLY), arm.os.open(arm.path("a"), os.O_RDONLY)
    arm.os.chdir(directory)
    assert arm.os.getcwd() == arm.top
    arm.os.fchdir(directory)
    fails(errno.ENOTDIR, arm.os.chdir, file)
    fails(errno.ENOTDIR, arm.os.fchdir, file)
    fails(errno.ENOTDIR, arm.os.chdir, "a")
    arm.os.close(directory)
    arm.os.close(file)


@pytest.mark.usefixtures("came_from")
def test_a_current_directory_that_was_removed_has_no_path(arm: Arm) -> None:
    arm.os.mkdir(arm.path("d"))
    arm.os.chdir(arm.path("d"))
    arm.os.rmdir(arm.path("d"))
    fails(errno.ENOENT, arm.os.getcwd)
    fails(errno.ENOENT, arm.os.mkdir, "x")
    fails(errno.ENOENT, arm.os.open, "x", os.O_CREAT | os.O_WRONLY)
    fails(errno.ENOENT, arm.os.stat, "x" * 300)
    assert arm.os.listdir(".") == []
    assert arm.os.stat("..").st_ino == arm.os.stat(arm.top).st_ino


def test_a_directory_descriptor_can_be_synced_and_rewound_and_not_read(arm: Arm) -> None:
    directory = arm.os.open(arm.top, os.O_RDONLY)
    arm.os.fsync(directory)
    arm.os.fdatasync(directory)
    assert arm.os.lseek(directory, 0, os.SEEK_SET) == 0
    fails(errno.EISDIR, arm.os.read, directory, 1)
    fails(errno.EISDIR, arm.os.pread, directory, 1, 0)
    fails(errno.EBADF, arm.os.write, directory, b"x")
    fails(errno.EINVAL, arm.os.ftruncate, directory, 0)
    arm.os.close(directory)
