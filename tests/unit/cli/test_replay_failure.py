"""``powercut replay`` of a failure of ``explore``: the recorded crash, then the program again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from powercut.fuzz.reproducer import FAILURES
from tests.meta.source_tree import run_python

APP = """
import os

def save(ack):
    with open("f.tmp", "wb") as file:
        file.write(b"new")
        file.flush()
        os.fsync(file.fileno())
    os.replace("f.tmp", "f")
    ack({"f": b"new"})
"""
SYNC = """
    folder = os.open(".", os.O_RDONLY)
    os.fsync(folder)
"""


def powercut(folder: Path, *arguments: str) -> tuple[int, str]:
    ran = run_python("-m", "powercut", *arguments, cwd=folder)
    return ran.returncode, ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def failure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The failure of a program, which is explored under xfs."""
    folder = tmp_path_factory.mktemp("explored")
    (folder / "app.py").write_text(APP, "utf-8")
    code, output = powercut(folder, "explore", "app:save", "--model", "xfs")
    assert code == ExitCode.VIOLATION, output
    (file,) = (folder / FAILURES).iterdir()
    return file


@pytest.fixture
def kept(failure: Path, tmp_path: Path) -> Path:
    """A copy of the failure, in a folder that has the program."""
    (tmp_path / "app.py").write_text(APP, "utf-8")
    return Path(shutil.copy(failure, tmp_path))


def test_a_program_that_is_unchanged_fails_again(kept: Path, tmp_path: Path) -> None:
    code, output = powercut(tmp_path, "replay", str(kept))
    assert code == ExitCode.VIOLATION
    lines = output.splitlines()
    assert lines[:6] == [
        "FAILED  LostAck  on xfs",
        "  acknowledged value 1 is lost: /disk/f does not exist",
        "  crash     power cut after ack at app.py:10",
        "  lost      rename of /disk/f.tmp to /disk/f, app.py:9",
        "the recorded crash fails in the same way",
        "fails again: app:save was run again: xfs: unsafe in 1 of 11 states, exhaustive",
    ]
    assert "  cause     no fsync of /disk between rename at app.py:9 and ack at app.py:10" in lines


def test_the_verdict_stands_if_the_search_for_barriers_fails(kept: Path, tmp_path: Path) -> None:
    broken = "import powercut.explorer.diagnosis\npowercut.explorer.diagnosis._Search = None\n"
    (tmp_path / "app.py").write_text(APP + broken, "utf-8")
    code, output = powercut(tmp_path, "replay", str(kept))
    assert code == ExitCode.INTERNAL_ERROR
    _, _, found = output.partition("fails again: app:save was run again: xfs: unsafe in 1 of 11")
    assert "FAILED  LostAck  on xfs" in found
    assert "powercut itself failed while it explained a failure; the verdicts stand." in found


def test_the_recorded_crash_of_large_writes_fails_again(tmp_path: Path) -> None:
    large = APP.replace('file.write(b"new")', "file.write(bytes(3 << 20))").replace(
        'b"new"', "bytes(3 << 20)"
    )
    (tmp_path / "app.py").write_text(large.replace("os.fsync(file.fileno())", "pass"), "utf-8")
    code, output = powercut(tmp_path, "explore", "app:save", "--model", "ext4-ordered")
    assert code == ExitCode.VIOLATION, output
    for file in (tmp_path / FAILURES).iterdir():
        _, output = powercut(tmp_path, "replay", str(file))
        assert "the recorded crash fails in the same way" in output, output


def test_a_repaired_program_passes_now(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP.replace("    ack(", SYNC[1:] + "    ack("), "utf-8")
    code, output = powercut(tmp_path, "replay", str(kept))
    assert code == ExitCode.CLEAN
    assert "the recorded crash fails in the same way" in output
    assert output.splitlines()[-1].startswith("passes now: app:save was run again: xfs: safe of ")


def test_a_program_that_moved_is_named_by_the_user(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "app.py").rename(tmp_path / "moved.py")
    code, output = powercut(tmp_path, "replay", str(kept))
    assert code == ExitCode.USAGE
    assert output == (
        f"Error: there is no module 'app' in {tmp_path}, nor installed; "
        f"change to its directory, or install it; {kept} is of app:save: "
        "if it has moved, give --target module:object\n"
    )
    assert powercut(tmp_path, "replay", str(kept), "--target", "moved:save")[0] == (
        ExitCode.VIOLATION
    )


def test_a_target_that_the_user_names_wrongly_is_not_to_be_named_again(
    kept: Path, tmp_path: Path
) -> None:
    code, output = powercut(tmp_path, "replay", str(kept), "--target", "app:gone")
    assert code == ExitCode.USAGE
    assert output == "Error: module 'app' has no object 'gone'\n"


def test_no_option_names_a_check_that_moved(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP, "utf-8")
    check = "def check(known):\n    for value in known.acknowledged:\n        open(*value)\n"
    (tmp_path / "checks.py").write_text(check, "utf-8")
    powercut(tmp_path, "explore", "app:save", "--model", "xfs", "--check", "checks:check")
    (file,) = (tmp_path / FAILURES).iterdir()
    (tmp_path / "checks.py").unlink()
    code, output = powercut(tmp_path, "replay", str(file))
    assert code == ExitCode.USAGE
    assert output == (
        f"Error: the check that {file} was found with: there is no module 'checks' in "
        f"{tmp_path}, nor installed; change to its directory, or install it\n"
    )


def test_a_check_that_has_changed_is_reported(kept: Path, tmp_path: Path) -> None:
    for body, sentence in (
        ("pass", "the recorded crash passes the check now"),
        ("assert known.in_flight", "the recorded crash fails in another way; it was LostAck: "),
    ):
        text = f"{APP}\ndef check(known):\n    {body}\n\nsave.check = check\n"
        (tmp_path / "app.py").write_text(text, "utf-8")
        assert sentence in powercut(tmp_path, "replay", str(kept))[1]


def test_a_damaged_file_is_refused_in_one_sentence(kept: Path, tmp_path: Path) -> None:
    kept.write_bytes(kept.read_bytes()[:-20])
    code, output = powercut(tmp_path, "replay", str(kept))
    assert code == ExitCode.USAGE
    assert "is a malformed failure" in output
    assert "Traceback" not in output


RECOVERING = """
import os
from powercut import Limits

def write(path, data):
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync(".")

def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)

def save(ack):
    write("note", b"noted")
    ack("noted")

def check(known):
    if os.path.exists("note"):
        sync(".")
        with open("done", "wb") as file:
            file.write(b"noted")
        os.unlink("note")
    if known.acknowledged:
        with open("done") as file:
            assert file.read() == "noted"

save.check = check
save.limits = Limits(nested=1)
"""


def test_a_recovery_that_is_repaired_passes_now(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(RECOVERING, "utf-8")
    code, output = powercut(tmp_path, "explore", "app:save", "--model", "ext4")
    assert code == ExitCode.VIOLATION, output
    assert "in the recovery, no fsync of /disk/done between " in output
    (file,) = (tmp_path / FAILURES).iterdir()
    repaired = RECOVERING.replace("        os.unlink", '        sync("done")\n        os.unlink')
    (tmp_path / "app.py").write_text(repaired, "utf-8")
    code, output = powercut(tmp_path, "replay", str(file))
    assert code == ExitCode.CLEAN, output
    assert output.splitlines()[0] == (
        "the recorded crash is not possible now: the recovery has changed since"
    )
