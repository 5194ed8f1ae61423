"""A check that does not end: the first signal ends it, and so does the end of the time."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from powercut.cli.exit_code import ExitCode
from tests.meta.source_tree import run_python
from tests.unit.cli.command_line import powercut

WORKLOAD = """
import os
import signal

def save(process, ack):
    for name in ("/a", "/b"):
        descriptor = process.open(name, os.O_CREAT | os.O_WRONLY)
        process.write(descriptor, b"x")
        process.fsync(descriptor)
        process.close(descriptor)
        ack(name)

def check(process, known):
    names = process.listdir("/")
    assert len(known.acknowledged) != 1 or "a" in names
    if "b" in names and process.stat("/b").st_size == 0:
        {interrupt}
        while True:
            process.stat("/b")

def check_and_recover(process, known):
    process.rmdir("/d") if "d" in process.listdir("/") else process.mkdir("/d")
    check(process, known)

def always(process, known):
    while True:
        process.listdir("/")
"""
LOOP = WORKLOAD.splitlines().index('            process.stat("/b")') + 1


def explored(folder: Path, *arguments: str, interrupt: str = "pass") -> CompletedProcess[str]:
    (folder / "endless.py").write_text(WORKLOAD.format(interrupt=interrupt), "utf-8")
    command = ("-m", "powercut", "explore", "endless:save", "--model", "posix", *arguments)
    return run_python(*command, cwd=folder, timeout_s=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("engine", ["auto", "lazy"])
def test_the_first_signal_ends_a_check_that_takes_process(
    tmp_path: Path, number: int, engine: str
) -> None:
    arguments = ("--check", "endless:check", "--engine", engine, "-n", "1")
    ran = explored(tmp_path, *arguments, interrupt=f"os.kill(os.getpid(), {int(number)})")
    assert ran.returncode == ExitCode.INTERRUPTED, ran.stderr
    assert ran.stderr == "interrupted: these are the results so far\n"
    note = r"note +the check still ran when the time was over, at endless.py:(\d+) in check"
    found = re.search(note, ran.stdout)
    assert found is not None, ran.stdout
    assert int(found[1]) in {LOOP - 1, LOOP}
    if engine == "auto":
        assert "FAILED  CheckFailed" in ran.stdout
        assert "powercut replay" in ran.stdout
        following = ran.stdout[found.end() :].splitlines()[1]
        assert re.match(r"  crash +kill between create at endless.py:7 and write", following)


@pytest.mark.parametrize(("check", "how"), [("check", "unsafe"), ("always", "unknown")])
def test_the_end_of_the_time_ends_a_check_that_takes_process(
    tmp_path: Path, check: str, how: str
) -> None:
    ran = explored(tmp_path, "--check", f"endless:{check}", "--seconds", "1", "-n", "1")
    code = ExitCode.VIOLATION if how == "unsafe" else ExitCode.GOAL_MISSED
    assert ran.returncode == code, ran.stderr
    assert re.search(rf"posix +{how} .* stopped", ran.stdout)
    assert f" in {check}\n" in ran.stdout


def test_only_states_that_were_checked_are_counted_where_the_check_is_crashed(
    tmp_path: Path,
) -> None:
    (tmp_path / "counted.py").write_text(
        "from endless import *\nfrom powercut import Limits\n"
        "save.check = check_and_recover\nsave.limits = Limits(nested=1)\n",
        "utf-8",
    )
    (tmp_path / "endless.py").write_text(WORKLOAD.format(interrupt="pass"), "utf-8")
    command = ("-m", "powercut", "explore", "counted:save", "--model", "scc", "--seconds", "1")
    ran = run_python(*command, "-n", "1", cwd=tmp_path, timeout_s=60)
    assert "check still ran when the time was over" in ran.stdout, ran.stdout + ran.stderr
    assert re.search(r"scc +unknown +[1-9]\d* +0 +stopped", ran.stdout), ran.stdout


RECOVERY = """
import os

def save(ack):
    data = b"one"
    with open("new", "wb") as file:
        file.write(data)
    os.rename("new", "value")
    ack(data)

def check(known):
    if os.path.exists("value"):
        with open("value", "rb") as file:
            found = file.read()
        while found and not found.strip(b"\\0"):
            pass

save.check = check

def leave(known):
    if known.acknowledged and not os.path.exists("value"):
        os._exit(3)
"""


def recovered(folder: Path, *arguments: str) -> CompletedProcess[str]:
    (folder / "looping.py").write_text(RECOVERY, "utf-8")
    return run_python("-m", "powercut", *arguments, cwd=folder, timeout_s=90)


def test_a_recovery_that_does_not_end_is_a_finding_and_is_replayed(tmp_path: Path) -> None:
    ran = recovered(tmp_path, "explore", "looping:save", "--model", "ext4", "--timeout", "0.9")
    assert ran.returncode == ExitCode.VIOLATION, ran.stderr
    finding = [line.split(maxsplit=1) for line in ran.stdout.splitlines()]
    assert ["the", "check did not end within the time of --timeout"] in finding
    assert ["crash", "power cut after rename at looping.py:8"] in finding
    assert ["lost", "data of /disk/value, bytes 0 to 3, looping.py:6"] in finding
    cause = "no fsync of /disk/new between write at looping.py:6 and rename at looping.py:8"
    assert ["cause", cause] in finding
    assert "repair    with that fsync, none of " in ran.stdout
    (file,) = (tmp_path / ".powercut" / "failures").iterdir()
    assert '"timeout": 0.9' in file.read_text("ascii", "replace")
    again = recovered(tmp_path, "replay", str(file))
    assert again.returncode == ExitCode.VIOLATION, again.stderr
    assert "the recorded crash fails in the same way" in again.stdout


def test_a_report_says_that_states_were_left_out_because_checks_were_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "looping_once.py").write_text(RECOVERY, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("powercut.explorer.built_explorer.MOST_ENDLESS", 1)
    arguments = ("--model", "ext4", "--timeout", "0.9", "-n", "1")
    ran = powercut("explore", "looping_once:save", *arguments)
    assert ran.exit_code == ExitCode.VIOLATION, ran.output
    lines = ran.stdout.splitlines()
    assert re.match(r" *ext4 +unsafe +\d+ +1 +sampled", lines[4])
    (note,) = (line for line in lines if line.startswith("note "))
    assert note.endswith("and was ended; the other states were left out on ext4")


def test_a_recovery_that_ends_its_process_is_a_finding(tmp_path: Path) -> None:
    ran = recovered(
        tmp_path, "explore", "looping:save", "--check", "looping:leave", "--model", "xfs"
    )
    assert ran.returncode == ExitCode.VIOLATION, ran.stderr
    assert "the check ended its process by itself, with exit status 3\n  crash  " in ran.stdout
    assert "no fsync of /disk between rename at looping.py:8 and ack at" in ran.stdout


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_end_of_the_time_ends_a_check_in_another_process(
    tmp_path: Path, processes: str
) -> None:
    begun = time.monotonic()
    ran = recovered(
        tmp_path, "explore", "looping:save", "--model", "posix", "--timeout", "600",
        *("--seconds", "2", "-n", processes),
    )  # fmt: skip
    assert time.monotonic() - begun < 30
    assert ran.returncode == ExitCode.GOAL_MISSED, ran.stderr
    assert re.search(r"posix +unknown .* stopped", ran.stdout)
