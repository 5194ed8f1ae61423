"""Paths with ``..``: one program in a real directory and below the root, with equal results."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from powercut.interpose.interposed import interposed
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.conformance.calls import fails


@pytest.fixture(params=["disk", "machine"])
def top(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Enter a directory of the simulated disk, then one of the machine; provide its path."""
    if request.param == "disk":
        with interposed(Process(Disk()), sandbox=False):
            yield os.getcwd()
    else:
        monkeypatch.chdir(tmp_path)
        yield os.getcwd()


def test_the_parent_of_a_linked_directory_is_that_of_its_target(top: str) -> None:
    Path("n/m").mkdir(parents=True)
    os.symlink("n/m", "relative")
    os.symlink(f"{top}/n/m", "absolute")
    os.symlink("absolute/", "chain")
    Path("f").write_bytes(b"content")
    for link in ("relative", "absolute", "chain"):
        for path in (f"{link}/../../f", f"{top}/{link}/../../f", f"{top}/n/../{link}/./..//../f"):
            assert Path(path).read_bytes() == b"content"
        assert sorted(os.listdir(f"{link}/../..")) == ["absolute", "chain", "f", "n", "relative"]
        assert os.listdir(os.fsencode(f"{link}/..")) == [b"m"]
        os.mkdir(f"{link}/../../new/")
        os.rename(f"{link}/../../f", f"{link}/../../new/f")
        os.rename(f"{top}/{link}/../../new/f", "f")
        os.rmdir("new")


def test_a_link_may_lead_elsewhere_at_each_call(top: str) -> None:
    Path("n/m").mkdir(parents=True)
    for target, found in (("n/m", True), ("n", False), ("n/m", True)):
        os.symlink(target, "link")
        assert os.path.isdir(f"{top}/link/../../n") == found
        os.unlink("link")


@pytest.mark.parametrize(
    ("path", "number"),
    [("f/../..", errno.ENOTDIR), ("missing/../..", errno.ENOENT), ("ring/../..", errno.ELOOP)],
)
def test_only_a_directory_has_a_parent(top: str, path: str, number: int) -> None:
    Path("f").touch()
    os.symlink("ring", "ring")
    for each in (path, f"{top}/{path}", f"{top}/{path}/usr"):
        fails(number, os.listdir, each)


def test_a_removed_current_directory_has_a_parent(top: str) -> None:
    os.makedirs("d/e")
    os.chdir("d/e")
    os.rmdir(f"{top}/d/e")
    assert os.listdir("..") == []
    Path("../new").touch()
    fails(errno.ENOENT, Path("new").touch)
    os.chdir("..")
    assert os.listdir(".") == ["new"]
    assert os.path.samefile(".", f"{top}/d")


def test_files_are_found_from_above_the_root(top: str) -> None:
    Path("f").touch()
    os.chdir("..")
    name = os.path.basename(top)
    assert os.listdir(name) == ["f"]
    assert os.path.samefile(f"./{name}/../{name}", top)
    os.chdir(name)
    assert os.getcwd() == top


def test_a_link_of_the_machine_decides_where_dots_lead(tmp_path: Path) -> None:
    (tmp_path / "n/m").mkdir(parents=True)
    (tmp_path / "link").symlink_to("/usr")
    (tmp_path / "n/f").write_bytes(b"real")
    for root in ("/disk", "/powercut/disk"):
        with interposed(Process(Disk()), root, sandbox=False):
            Path("f").write_bytes(b"simulated")
            assert Path(f"{tmp_path}/link/..{root}/f").read_bytes() == b"simulated"
            assert Path(f"{tmp_path}/n/m/../f").read_bytes() == b"real"
            assert Path(f"{root}/{'../' * root.count('/')}{tmp_path}/n/f").read_bytes() == b"real"
            fails(errno.ENOENT, os.listdir, f"{tmp_path}/missing/..{root}")
