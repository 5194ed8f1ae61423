"""``powercut calibrate`` records and judges, and refuses other files and machines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from powercut.calibrate.calibration_file import read_rows
from powercut.calibrate.file_system import FILE_SYSTEMS
from powercut.calibrate.image_device import attached_devices
from powercut.calibrate.requirements import missing_requirements
from powercut.calibrate.row import ObservedOutcome, Row
from powercut.cli.exit_code import ExitCode
from tests.unit.cli.command_line import powercut

MISSING = missing_requirements([FILE_SYSTEMS["ext4"]])
needs_ext4 = pytest.mark.skipif(bool(MISSING), reason="; ".join(MISSING))
REMOVED = "every mount, loop device and image that was made is removed"

ROW = Row(
    fs="ext4",
    kernel="6.18.44",
    setup=[["write", "f", 0, 10, "a"]],
    ops=[["rename", "f", "g"], ["fsync", ""]],
    results=[None, None],
    marks=[0, 3],
    log=[["w", 4096, 512], ["f"]],
    images=2,
    mount_failed=[],
    seen=[ObservedOutcome(k=1, out={"f": "a10"}, n=2, how=[0, -1, [], None])],
    seed=7,
    seconds=0.1,
)
FORBIDDEN: Row = {
    **ROW,
    "seen": [ObservedOutcome(k=2, out={"f": "a10"}, n=1, how=[0, -1, [], None])],
}


def file_of(folder: Path, *rows: Row) -> str:
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def test_file_that_the_models_allow_is_clean(tmp_path: Path) -> None:
    result = powercut("calibrate", "--judge", file_of(tmp_path, ROW, ROW))
    assert result.exit_code == ExitCode.CLEAN
    (line,) = (line for line in result.stdout.splitlines() if "6.18.44" in line)
    assert line.split() == ["ext4", "ext4", "6.18.44", "2", "4", "2", "0", "0"]


def test_forbidden_outcome_is_shown_with_its_calls(tmp_path: Path) -> None:
    result = powercut("calibrate", "--judge", file_of(tmp_path, ROW, FORBIDDEN))
    assert result.exit_code == ExitCode.VIOLATION
    lines = result.stdout.rstrip().splitlines()
    assert lines[-6].startswith("ext4: ext4 forbids outcomes of 1 program; ")
    assert lines[-5:] == [
        "  seed 7, kernel 6.18.44",
        "  set-up  1. write f 0 10 a",
        "  calls   1. rename f g",
        "          2. fsync .",
        "  power cut after call 2 left f: a10",
    ]


def test_control_characters_of_another_machine_are_escaped(tmp_path: Path) -> None:
    outcome = ObservedOutcome(k=1, out={"\x1b[31m": "->\x1b"}, n=1, how=[])
    result = powercut("calibrate", "--judge", file_of(tmp_path, {**FORBIDDEN, "seen": [outcome]}))
    assert result.stdout.rstrip().endswith("left \\x1b[31m: ->\\x1b")


def test_named_file_system_limits_the_rows(tmp_path: Path) -> None:
    path = file_of(tmp_path, ROW, {**FORBIDDEN, "fs": "xfs"})
    assert powercut("calibrate", "ext4", "--judge", path).exit_code == ExitCode.CLEAN
    assert powercut("calibrate", "xfs", "--judge", path).exit_code == ExitCode.VIOLATION


def test_files_may_follow_the_first_one(tmp_path: Path) -> None:
    path = file_of(tmp_path, ROW)
    result = powercut("calibrate", "--judge", path, path, "ext4", path)
    assert result.exit_code == ExitCode.CLEAN
    (line,) = (line for line in result.stdout.splitlines() if "6.18.44" in line)
    assert line.split()[3] == "3"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ntfs"], "there is no file system 'ntfs'; known: ext4, "),
        (["--judge", "/dev/null"], "/dev/null is no calibration file: it is empty"),
        (["--judge", "missing"], "cannot read missing: No such file or directory"),
        (["--judge", "x", "--json", "y"], "--json writes recordings"),
        (["--json", "no/such/y"], "cannot write --json no/such/y: there is no directory"),
        (["--minutes", "0"], "0 is not a number above 0, at most 1000000000"),
    ],
    ids=["file-system", "empty", "missing", "judge-and-json", "no-directory", "no-time"],
)
def test_mistake_is_one_sentence(arguments: list[str], sentence: str) -> None:
    result = powercut("calibrate", *arguments)
    assert result.exit_code == ExitCode.USAGE
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr


def test_machine_that_lacks_something_is_refused_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    result = powercut("calibrate")
    assert result.exit_code == ExitCode.USAGE
    assert "Error: cannot record: root is needed to mount file systems" in result.stderr


@needs_ext4
def test_recorded_rows_can_be_judged_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    result = powercut("calibrate", "ext4", "--minutes", "0.03", "--json", str(path))
    assert result.exit_code == ExitCode.CLEAN, result.output
    assert REMOVED in result.stdout
    rows = list(read_rows(path))
    assert rows
    assert [row["seed"] for row in rows] == list(range(len(rows)))
    assert powercut("calibrate", "--judge", str(path)).exit_code == ExitCode.CLEAN


@needs_ext4
def test_full_disk_ends_the_recording_in_one_sentence() -> None:
    result = powercut("calibrate", "ext4", "--json", "/dev/full")
    assert result.exit_code == ExitCode.USAGE
    assert "cannot write --json /dev/full: No space left on device after 0 rows" in result.stderr
    assert REMOVED in result.stdout


@needs_ext4
def test_interrupted_recording_removes_everything_and_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "powercut", "calibrate", "ext4", "--json", str(path)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not (path.exists() and path.read_text().count("\n") >= 2):
        assert process.poll() is None
    # Ctrl-C goes to all processes of the terminal.
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate()
    assert process.returncode == ExitCode.INTERRUPTED
    assert "errno differs" in output
    assert REMOVED in output
    assert attached_devices(process.pid) == []
    assert len(list(read_rows(path))) >= 2
