"""What targets print does not flood the report: it has the output of the failure that it shows."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import cast

import pytest

from powercut.cli.exit_code import ExitCode
from powercut.fuzz.printed import PRINTED
from powercut.fuzz.reproducer import FAILURES
from tests.meta.source_tree import run_python
from tests.unit.cli.command_line import powercut

LOUD = """
import sys

from powercut import ActionKind, DiskTarget, LostAck

class Loud(DiskTarget):
    puts = 0

    def actions(self):
        return [ActionKind("put", 1, self.put)]

    def recover(self, process):
        print("recovers")
        self.process = process

    def check_recovered(self):
        found = len(self.process.listdir("/"))
        if found < self.puts:
            print("misses\\a", self.puts - found, file=sys.stderr)
            raise LostAck("a directory is lost")

    def put(self, arguments):
        print(f"put {self.puts}")
        try:
            self.process.mkdir(f"/{self.puts}")
        except OSError:
            return "refused"
        self.puts += 1
        return "ack"
"""
SHOWN = """
  printed
          recovers
          put 0
          recovers
          misses\\x07 1

"""
RUN = ("run", "--examples", "10", "--model", "posix")


@pytest.mark.parametrize("processes", [1, 2])
def test_only_the_output_of_the_shown_failure_is_in_the_report(
    tmp_path: Path, processes: int
) -> None:
    (tmp_path / "loud.py").write_text(LOUD, encoding="ascii")
    ran = run_python(
        "-m", "powercut", *RUN, "loud:Loud", "-n", str(processes), cwd=tmp_path, timeout_s=60
    )
    assert ran.returncode == ExitCode.VIOLATION, ran.stderr
    assert ran.stderr == ""
    assert SHOWN in ran.stdout
    assert ran.stdout.count("recovers\n") == 2


def test_last_lines_of_a_long_output_are_shown(module: str) -> None:
    source = LOUD.replace('print("recovers")', 'print(*range(30), sep="\\n")')
    Path(f"{module}.py").write_text(source, encoding="ascii")
    result = powercut(*RUN, f"{module}:Loud", "-n", "1")
    assert "  printed\n          42 lines before\n          11\n" in result.stdout


def test_replay_shows_the_output_of_the_run_that_it_repeats_once(module: str) -> None:
    Path(f"{module}.py").write_text(LOUD, encoding="ascii")
    powercut(*RUN, f"{module}:Loud", "-n", "1")
    (path,) = FAILURES.glob("*.json")
    result = powercut("replay", str(path))
    assert result.exit_code == ExitCode.VIOLATION
    assert result.stdout.count("recovers\n") == 2
    assert "  cause   no fsync of / between mkdir at " in result.stdout


@pytest.mark.parametrize("statement", [
    'sys.stdout.buffer.write(b"\\xff\\n")',
    'sys.stdout.write("\\udcff")',
    'print("text".encode(sys.stdout.encoding))',
    "sys.stderr.reconfigure(line_buffering=True)",
    "sys.stdout.fileno()",
    "sys.stdout.close()",
    "sys.stderr.flush()",
])  # fmt: skip
def test_what_the_standard_output_takes_is_no_failure(module: str, statement: str) -> None:
    source = LOUD.replace('print("recovers")', statement).replace("raise LostAck", "LostAck")
    Path(f"{module}.py").write_text(source, encoding="ascii")
    result = powercut(*RUN, f"{module}:Loud", "-n", "1")
    assert result.exit_code == ExitCode.CLEAN, result.stdout


def test_bytes_are_shown_escaped(module: str) -> None:
    source = LOUD.replace('print("recovers")', 'sys.stdout.buffer.write(b"\\xff\\n")')
    Path(f"{module}.py").write_text(source, encoding="ascii")
    result = powercut(*RUN, f"{module}:Loud", "-n", "1")
    assert "  printed\n          \\xff\n          put 0\n" in result.stdout


def test_bytes_as_text_are_refused_as_by_the_standard_output() -> None:
    with redirect_stdout(PRINTED), pytest.raises(TypeError):
        sys.stdout.writelines(cast("list[str]", [b"bytes"]))
