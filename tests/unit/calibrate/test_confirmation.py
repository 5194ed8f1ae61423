"""``powercut confirm`` on a real file system; needs root, FUSE, loop devices and mkfs.ext4."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from powercut.calibrate.confirmation import late_statement
from powercut.calibrate.file_system import FILE_SYSTEMS
from powercut.calibrate.requirements import missing_requirements
from powercut.fuse.image_check import FilesCheck
from powercut.fuse.recording import Acknowledgement, Recording
from sim.disk.calls.process import Process
from sim.disk.disk import Disk
from tests.unit.fuse.recorded import powercut_in

MISSING = missing_requirements([FILE_SYSTEMS["ext4"]])
needs_ext4 = pytest.mark.skipif(bool(MISSING), reason="; ".join(MISSING) or "nothing is missing")

CARELESS = "echo new > t; mv t f"
CAREFUL = "echo new > t; sync t; mv t f; sync ."
SPARSE = "truncate -s 9G t; echo x >> t; echo | dd of=t seek=9000 bs=1 conv=notrunc status=none"


def recorded(folder: Path, script: str) -> None:
    result = powercut_in(
        folder, "record", "--setup", "echo old > f", "-o", "it", "--", "sh", "-c", script
    )
    assert result.returncode == 0, result.stderr


def test_a_line_that_is_read_late_makes_no_newer_file_a_failure() -> None:
    """The second value is on the disk before the first line was read from the pipe."""
    process = Process(Disk())
    acknowledgements = []
    for number in (1, 2):
        descriptor = process.open("/f", os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"%d" % number)
        process.close(descriptor)
        acknowledgements.append(Acknowledgement(process.disk.operations, f"saved {number}"))
    recording = Recording(
        command=("program",), setup="", check="", mount_point="/mnt", exit_status=0, notes=(),
        acknowledgements=tuple(acknowledgements), journal=process.disk.journal,
    )  # fmt: skip
    check = FilesCheck(recording)
    assert check.violation({"/f": b"2"}, 0) is not None
    assert not late_statement(check, {"/f": b"2"}, (7, 9), 0)
    assert late_statement(check, {"/f": b"3"}, (7, 9), 0)
    assert late_statement(check, {"/f": b"1"}, (7, 9), 2)


@needs_ext4
def test_a_lost_rename_is_confirmed_on_ext4(tmp_path: Path) -> None:
    recorded(tmp_path, CARELESS)
    result = powercut_in(tmp_path, "confirm", "it", "ext4", "--images", "40")
    assert (result.returncode, result.stderr) == (1, "")
    first, *statements = result.stdout.splitlines()
    assert first.startswith("ext4: seen in ")
    assert "  acknowledged value 1 is lost: /f shows an older one" in statements


@needs_ext4
@pytest.mark.parametrize("script", [CAREFUL, f"{SPARSE}; sync t; mv t f; sync ."])
def test_a_failure_of_a_careful_program_is_not_confirmed(tmp_path: Path, script: str) -> None:
    recorded(tmp_path, script)
    result = powercut_in(tmp_path, "confirm", "it", "ext4", "--images", "40")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("ext4: not seen in ")


@needs_ext4
def test_a_program_that_writes_other_bytes_each_time_needs_a_check(tmp_path: Path) -> None:
    recorded(tmp_path, "cat /proc/sys/kernel/random/uuid > f")
    result = powercut_in(tmp_path, "confirm", "it", "ext4")
    assert result.returncode == 2
    assert result.stderr.startswith("Error: the program does not write the same bytes each time")
    assert not list(tmp_path.glob("powercut-*"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("missing",), "cannot read missing"),
        (("missing", "ntfs"), "there is no file system 'ntfs'; known: ext4"),
    ],
)
def test_a_bad_argument_is_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    result = powercut_in(tmp_path, "confirm", *arguments)
    assert result.returncode == 2
    assert result.stderr.startswith(f"Error: {sentence}")
