"""Renames of directories: independent of one another, except where a directory would be lost."""

from __future__ import annotations

import os

import pytest

from sim.disk.calls.process import Process
from sim.disk.crash.directory_renames import DirectoryRenames
from sim.disk.crash.image import Image
from sim.disk.crash.micro_operation import MoveName
from sim.disk.crash.persistence import BTRFS, POSIX, PersistenceModel
from sim.disk.crash.state_space import StateSpace
from sim.disk.disk import Disk

_MODELS = pytest.mark.parametrize("model", [BTRFS, POSIX], ids=lambda model: model.name)


def _paths_after(
    model: PersistenceModel, directories: str, renames: list[tuple[str, str]]
) -> set[str]:
    """Return the paths of each disk that a power cut may leave, as one string.

    Before the renames, btrfs has a log tree, and so keeps no order by itself.
    """
    disk = Disk(model=model)
    process = Process(disk)
    for path in directories.split():
        process.mkdir(path)
    process.sync()
    process.fsync(process.open("/", os.O_RDONLY))
    for old, new in renames:
        process.rename(old, new)
    images = (
        Image.of_platter(state.inodes, disk.next_inode)
        for state in StateSpace(disk.unsynced()).all()
    )
    return {" ".join(path for path, _ in image.tree()) for image in images}


@_MODELS
def test_renames_within_a_directory_survive_in_any_combination(model: PersistenceModel) -> None:
    found = _paths_after(model, "/a /b", [("/a", "/x"), ("/b", "/y")])
    assert found == {"/ /a /b", "/ /b /x", "/ /a /y", "/ /x /y"}


@_MODELS
def test_a_rename_within_a_directory_does_not_wait_for_one_into_another(
    model: PersistenceModel,
) -> None:
    found = _paths_after(model, "/a /b /c", [("/a", "/c/a"), ("/b", "/y")])
    assert found == {"/ /a /b /c", "/ /b /c /c/a", "/ /a /c /y", "/ /c /c/a /y"}


@_MODELS
def test_two_directories_never_hold_each_other(model: PersistenceModel) -> None:
    renames = [("/a", "/b/a"), ("/b/a", "/a"), ("/b", "/a/b")]
    assert _paths_after(model, "/a /b", renames) == {"/ /a /b", "/ /b /b/a", "/ /a /a/b"}


@_MODELS
def test_renames_into_other_directories_are_in_order(model: PersistenceModel) -> None:
    found = _paths_after(model, "/a /b /c /d", [("/a", "/b/a"), ("/c", "/d/c")])
    assert found == {"/ /a /b /c /d", "/ /b /b/a /c /d", "/ /b /b/a /d /d/c"}


@_MODELS
def test_a_directory_that_has_moved_away_is_not_replaced(model: PersistenceModel) -> None:
    found = _paths_after(model, "/cur /new", [("/cur", "/old"), ("/new", "/cur")])
    assert found == {"/ /cur /new", "/ /new /old", "/ /cur /old"}


@_MODELS
def test_a_directory_that_still_holds_another_is_not_replaced(model: PersistenceModel) -> None:
    found = _paths_after(model, "/b /b/x /c", [("/b/x", "/x"), ("/c", "/b")])
    assert found == {"/ /b /b/x /c", "/ /b /c /x", "/ /b /x"}


@_MODELS
def test_the_renames_of_one_directory_are_in_order(model: PersistenceModel) -> None:
    assert _paths_after(model, "/a", [("/a", "/b"), ("/b", "/c")]) == {"/ /a", "/ /b", "/ /c"}


def test_a_rename_among_many_goes_through_few_of_them() -> None:
    """They need the others: a disk with thousands would be slow otherwise."""
    renames, needs = DirectoryRenames(), 0
    for index in range(100):
        move = MoveName(index, index, 1, "current", 2, f"old-{index}", 0)
        assert [*renames.before(move)] == [index - 1] * (index > 0)
        renames.add(move, index, needs)
        needs |= 1 << index
    assert {*renames.before(MoveName(100, 100, 2, "new", 1, "current", 0))} == {99}
