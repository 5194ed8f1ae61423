"""A check that does not end: the first signal ends it, and so does the end of the time."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from powercut.cli.exit_code import ExitCode
from tests.meta.source_tree import run_python

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
