"""A recording is written as a whole or not at all."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from powercut.fuse.recording import Acknowledgement, Recording, load_recording, save_recording
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.unit.cli.command_line import powercut

ACKNOWLEDGED = (Acknowledgement(1, "made"),)


def a_recording() -> Recording:
    disk = Disk()
    Process(disk).mkdir("/d")
    return Recording(("app",), "", "", "/disk", 0, ACKNOWLEDGED, (), disk.journal)


@contextmanager
def no_space() -> Iterator[None]:
    """Let no file become longer than 100 bytes, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_no_file(tmp_path: Path) -> None:
    with no_space(), pytest.raises(OSError, match="File too large"):
        save_recording(a_recording(), tmp_path / "app.recording")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "app.recording"
    file.write_bytes(b"earlier")
    with no_space(), pytest.raises(OSError, match="File too large"):
        save_recording(a_recording(), file)
    assert file.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [file]


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to(file)
    save_recording(a_recording(), link)
    assert link.is_symlink()
    assert load_recording(file).acknowledgements == ACKNOWLEDGED


def test_a_pipe_gets_the_bytes(tmp_path: Path) -> None:
    pipe, found = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    save_recording(a_recording(), pipe)
    reader.join()
    assert pipe.is_fifo()
    assert found[0].startswith(b'{"acknowledgements"')


def test_replay_names_the_command_that_judges_a_recording(tmp_path: Path) -> None:
    file = tmp_path / "app.recording"
    save_recording(a_recording(), file)
    result = powercut("replay", str(file))
    assert result.exit_code == ExitCode.USAGE
    assert result.stderr == (
        f"Error: {file} is the recording of a program: judge it again with powercut try "
        f"--recording {file}\n"
    )
