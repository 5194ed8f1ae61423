"""The directories of checks that a killed process leaves behind are removed by the next one."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from powercut.fuse import checks_folder as module
from powercut.fuse.checks_folder import checks_folder
from tests.meta.source_tree import run_python

KILLED = """
import os, signal, sys
from powercut.fuse import checks_folder as module

module._MEMORY = sys.argv[1]
with module.checks_folder() as path:
    open(f"{path}/1.acks", "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of the test, used in place of /dev/shm."""
    monkeypatch.setattr(module, "_MEMORY", str(tmp_path))
    return tmp_path


@pytest.fixture
def left(memory: Path) -> Path:
    """A directory of a process that was killed."""
    run_python("-c", KILLED, str(memory))
    (left,) = memory.iterdir()
    assert [file.name for file in left.iterdir()] == ["1.acks"]
    return left


def test_a_directory_of_a_killed_process_is_removed(memory: Path, left: Path) -> None:
    with checks_folder() as path:
        assert [str(each) for each in memory.iterdir()] == [path]
    assert not left.exists()
    assert list(memory.iterdir()) == []


def test_a_directory_whose_process_lives_stays(memory: Path) -> None:
    """Also before it is locked, and where the file system has no locks."""
    alive = memory / f"powercut-checks-{os.getpid()}-alive"
    alive.mkdir()
    with checks_folder():
        assert alive.exists()


def test_a_directory_that_another_process_has_locked_stays(left: Path) -> None:
    descriptor = os.open(left, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with checks_folder():
        pass
    assert left.exists()
    os.close(descriptor)
    with checks_folder():
        assert not left.exists()


def test_a_process_locks_its_directory(memory: Path) -> None:
    with checks_folder() as path:
        descriptor = os.open(path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
    assert list(memory.iterdir()) == []


def test_directories_of_other_names_and_links_stay(memory: Path, left: Path) -> None:
    other = left.rename(memory / "powercut-checks")
    link = memory / left.name
    link.symlink_to(other)
    with checks_folder():
        pass
    assert (other / "1.acks").exists()
    assert link.is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a directory to another user")
def test_a_directory_of_another_user_stays(left: Path) -> None:
    os.chown(left, 12345, 12345)
    with checks_folder():
        pass
    assert left.exists()
