"""``dump`` writes the files of an image to a directory of the real file system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from powercut.explorer.dump import dump
from sim.disk.calls.process import Process
from sim.disk.crash.image import Image
from sim.disk.disk import Disk
from sim.errors import HarnessError


def image() -> Image:
    process = Process(Disk())
    process.mkdir("/d", 0o500)
    descriptor = process.open("/d/f", os.O_CREAT | os.O_WRONLY, 0o640)
    process.pwrite(descriptor, b"end", 1 << 30)
    process.link("/d/f", "/hard")
    process.symlink("/etc/passwd", "/soft")
    process.mkdir("/empty")
    process.chown("/d/f", 5, 6)
    return process.disk.unmounted()


def test_files_directories_links_and_holes_are_written(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "image"
    dump(image(), folder)
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    assert names == ["d", "d/f", "empty", "hard", "soft"]
    found = (folder / "d" / "f").stat()
    assert found.st_size == (1 << 30) + 3
    assert found.st_blocks * 512 < 1 << 20
    with (folder / "hard").open("rb") as file:
        assert file.read(4) == b"\0" * 4
        file.seek(1 << 30)
        assert file.read() == b"end"
    assert found.st_mode & 0o777 == 0o640
    assert (folder / "d").stat().st_mode & 0o777 == 0o500
    if os.geteuid() == 0:
        assert (found.st_uid, found.st_gid) == (5, 6)
    assert found.st_ino == (folder / "hard").stat().st_ino
    assert (folder / "soft").readlink() == Path("/etc/passwd")


def test_a_directory_that_exists_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"cannot dump to .*: File exists"):
        dump(image(), tmp_path)
