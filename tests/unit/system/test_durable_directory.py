"""The whole way to a directory is durable when it has been made."""

from __future__ import annotations

from pathlib import Path

import pytest

from system.host import RealFileSystem
from system.ports import FileKind
from system.storage.durable_directory import make_durable_directory
from tests.unit.system.faulty_files import FaultyFiles, FaultyHost


def test_each_new_directory_is_durable_before_the_next_one_is_made(here: FaultyHost) -> None:
    make_durable_directory(here.files, "a/b")

    assert here.files.calls == ["mkdir a", "sync_dir ", "mkdir a/b", "sync_dir a"]
    assert here.names("a") == ["b"]


def test_a_directory_that_is_there_may_still_need_its_barrier(here: FaultyHost) -> None:
    here.write("a/x", b"")

    make_durable_directory(here.files, "a")

    assert here.files.calls == ["sync_dir "]


def test_an_absolute_way_starts_at_the_top(here: FaultyHost) -> None:
    files = FaultyFiles(RealFileSystem(""))
    path = here.path("a")

    make_durable_directory(files, path)

    assert files.calls[0] == "sync_dir /"
    assert files.calls[-2:] == [f"mkdir {path}", f"sync_dir {here.directory}"]


def test_a_file_in_the_way_is_refused(here: FaultyHost) -> None:
    here.write("a", b"")

    with pytest.raises(FileExistsError):
        make_durable_directory(here.files, "a/b")


class MadeMeanwhile(RealFileSystem):
    """Each directory appears after the question whether it is there."""

    def kind(self, path: str) -> FileKind | None:
        found = super().kind(path)
        if found is None:
            super().mkdir(path)
        return found


def test_a_directory_may_be_made_by_another_thread_at_the_same_time(tmp_path: Path) -> None:
    make_durable_directory(MadeMeanwhile(str(tmp_path)), "a/b")

    assert (tmp_path / "a/b").is_dir()
