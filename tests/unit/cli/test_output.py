"""The output of a command cannot be written: it is full, or the program that reads it has ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from tests.meta.source_tree import ROOT
from tests.unit.cli.command_line import DIRECTORIES

COMMANDS = ["--help", "--version", "run --help", "doctor", "run printing:Target --examples 9 -n 1"]
PRINTING = f"""{DIRECTORIES}
print("imported")

class Target(Directories):
    def put(self, arguments):
        print("stored" * 1_000)
        return super().put(arguments)
"""


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "printing.py").write_text(PRINTING, encoding="ascii")
    monkeypatch.chdir(tmp_path)


def powercut_to(output: int, command: str, errors: int = subprocess.PIPE) -> tuple[int, str]:
    """Run a command with this descriptor as its output; return its exit code and its errors."""
    done = subprocess.run(
        [sys.executable, "-m", "powercut", *command.split()],
        stdout=output, stderr=errors, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize("command", [*COMMANDS, "run printing:Target --examples 9 -n 2"])
def test_an_output_that_is_full_is_a_mistake(command: str) -> None:
    with Path("/dev/full").open("w") as full:
        code, errors = powercut_to(full.fileno(), command)
    assert code == ExitCode.USAGE
    assert errors == "Error: the output: No space left on device; write it to another place\n"
    assert not Path(".powercut").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_without_a_reader_ends_the_command(command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert powercut_to(writer, command) == (ExitCode.NO_READER, "")
    finally:
        os.close(writer)


def test_a_mistake_keeps_its_exit_code_if_nothing_can_be_printed() -> None:
    with Path("/dev/full").open("w") as full:
        code, _ = powercut_to(full.fileno(), "run nothing", full.fileno())
    assert code == ExitCode.USAGE


def test_what_was_printed_before_a_mistake_is_written_too() -> None:
    with Path("/dev/full").open("w") as full:
        code, errors = powercut_to(full.fileno(), "run printing:Nothing")
    assert code == ExitCode.USAGE
    assert errors == (
        "Error: module 'printing' has no object 'Nothing'\n"
        "Error: the output: No space left on device; write it to another place\n"
    )


@pytest.mark.parametrize(
    "command",
    [
        "run printing:Target --examples 3 --steps 4 -n 1",
        "run printing:Target --examples 3 --steps 4 -n 2",
        "explore printing:work --model scc",
        "mutants printing:mutant --seconds 0.2",
    ],
)
def test_json_is_the_only_output_whatever_the_program_prints(command: str, tmp_path: Path) -> None:
    (tmp_path / "printing.py").write_text(
        f"""
import os
from powercut import LostAck, Mutant
{PRINTING}
    def recover(self, process):
        os.write(1, b"raw")
        super().recover(process)

def work(ack):
    print("at work")
    os.write(1, b"raw")
    with open("file", "wb"):
        ack({{}})

mutant = Mutant("none", Target, [LostAck])
""",
        encoding="ascii",
    )
    done = subprocess.run(
        [sys.executable, "-m", "powercut", *command.split(), "--json", "-"],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert json.loads(done.stdout)["schema"] == 1, done.stderr
    assert "imported" in done.stderr
