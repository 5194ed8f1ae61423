"""An interrupt of a campaign names the runs that take long, with the line that each executes."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from tests.meta.source_tree import run_python

PROGRAM = """
import os, signal, threading
from powercut import ActionKind, DiskTarget

class Target(DiskTarget):
    puts = 0

    def actions(self):
        return [ActionKind("put", 1, self.put, lambda _choices: {"key": "a"})]

    def recover(self, process):
        self.process = process
        os.environ["HANG_IN"] == "recover" and self.hang()

    def quiesce(self):
        os.environ["HANG_IN"] == "quiesce" and self.hang()

    def put(self, arguments):
        self.process.mkdir(f"/{self.puts}")
        self.puts += 1
        self.puts == 3 and os.environ["HANG_IN"] == "put" and self.hang()
        return "stored"

    def hang(self):
        command = os.getpid() if os.environ["PROCESSES"] == "1" else os.getppid()
        os.kill(command, int(os.environ["SIGNAL"])); threading.Event().wait()
"""
LINE = PROGRAM.count("\n")
MAIN = """
from powercut.cli.main import main
from powercut.fuzz.campaign import campaign
campaign.LONG_SECONDS = campaign.ENDLESS_SECONDS = {seconds}
if __name__ == "__main__":
    main()
"""


MUTANT = """
from powercut import Mutant

mutant = Mutant("it hangs", Target, [OSError])
"""


def interrupted(
    folder: Path, processes: int, number: int, method: str = "put", seconds: float = 0
) -> str:
    """Run a campaign that is interrupted in a method that does not end; return its stderr."""
    (folder / "hanging.py").write_text(PROGRAM, encoding="ascii")
    (folder / "main.py").write_text(MAIN.format(seconds=seconds), encoding="ascii")
    ran = run_python(
        "main.py", "run", "hanging:Target", "--examples", "1", "--steps", "5", "--seed", "7",
        *("-n", str(processes), "--faults", ""), cwd=folder, timeout_s=60,
        environment={
            "HANG_IN": method, "PROCESSES": str(processes), "SIGNAL": str(int(number)),
        },
    )  # fmt: skip
    assert ran.returncode == ExitCode.INTERRUPTED, ran.stderr
    assert ran.stdout.splitlines()[-1].startswith("interrupted: these are the results so far")
    return ran.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("processes", [1, 2])
def test_interrupt_names_the_step_that_takes_long_and_its_line(
    tmp_path: Path, processes: int, number: int
) -> None:
    text = interrupted(tmp_path, processes, number)
    start = "run 0 of target 'hanging:Target', --seed 7, has taken "
    assert text.startswith(start), text
    assert text.endswith(f'put(key="a"), at hanging.py:{LINE} in Target.hang\n'), text
    assert " s; it was interrupted in step " in text


@pytest.mark.parametrize(
    ("method", "reached"), [("recover", "before its first step"), ("quiesce", "after step ")]
)
def test_interrupt_names_what_the_run_has_reached(
    tmp_path: Path, method: str, reached: str
) -> None:
    assert f" s; it was interrupted {reached}" in interrupted(tmp_path, 1, signal.SIGINT, method)


@pytest.mark.parametrize("processes", [1, 2])
def test_interrupt_names_no_run_that_is_quick(tmp_path: Path, processes: int) -> None:
    assert interrupted(tmp_path, processes, signal.SIGINT, seconds=1000) == ""


ENDLESS = """
class Endless(Target):
    def hang(self):
        while True:
            self.puts += 1
"""


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("method", ["put", "recover"])
def test_run_that_does_not_end_is_ended_with_the_time_and_named(
    tmp_path: Path, processes: int, method: str
) -> None:
    (tmp_path / "hanging.py").write_text(f"{PROGRAM}{ENDLESS}", encoding="ascii")
    (tmp_path / "main.py").write_text(MAIN.format(seconds=0), encoding="ascii")
    ran = run_python(
        "main.py", "run", "hanging:Endless", "--seconds", "0.1", "--steps", "30", "--seed", "7",
        *("-n", str(processes), "--json", "out.json"), cwd=tmp_path, timeout_s=60,
        environment={"HANG_IN": method},
    )  # fmt: skip
    assert ran.returncode == ExitCode.GOAL_MISSED, ran.stderr
    assert ran.stderr.startswith("run 0 of target 'hanging:Endless', --seed 7, has taken ")
    assert " in Endless.hang\n" in ran.stderr
    assert ran.stdout.splitlines()[-1].startswith("no violation was found, but a run did not end")
    found = json.loads((tmp_path / "out.json").read_text("ascii"))
    assert (found["verdict"], found["runs"]) == ("unended", 0)


def test_interrupt_of_a_search_for_a_mutant_names_the_line_as_well(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text(f"{PROGRAM}{MUTANT}", encoding="ascii")
    (tmp_path / "main.py").write_text(MAIN.format(seconds=0), encoding="ascii")
    ran = run_python(
        "main.py", "mutants", "hanging:mutant", cwd=tmp_path, timeout_s=60,
        environment={"HANG_IN": "put", "PROCESSES": "2", "SIGNAL": str(int(signal.SIGINT))},
    )  # fmt: skip
    assert ran.returncode == ExitCode.INTERRUPTED, ran.stderr
    assert ran.stderr.startswith("run 0 of mutant 'hanging:mutant', --seed 0, has taken ")
    assert f", at hanging.py:{LINE} in Target.hang\ninterrupted\n" in ran.stderr
