"""``powercut explore`` with a file that is removed at the end, and has an odd name."""

from __future__ import annotations

from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from tests.unit.cli.command_line import powercut

ODD_NAME = """
import os

PATH = "/red\\x1b[31m"

def create(process, ack):
    process.close(process.open(PATH, os.O_CREAT | os.O_WRONLY))
    ack({PATH: b""})

def create_two_lines(process, ack):
    path = os.fsdecode(b"/a\\nsafe on scc \\xff")
    process.close(process.open(path, os.O_CREAT | os.O_WRONLY))
    ack({path: b""})

def remove(process, ack):
    process.close(process.open(PATH, os.O_CREAT | os.O_WRONLY))
    process.sync()
    ack({PATH: b""})
    process.unlink(PATH)
    process.sync()
    ack({PATH: None})
"""


@pytest.fixture(autouse=True)
def odd_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module with the workloads; findings are kept in a directory of the test."""
    (tmp_path / "odd_name.py").write_text(ODD_NAME, encoding="ascii")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)


def test_the_removal_that_a_workload_ends_with_is_not_taken_for_a_blind_check() -> None:
    result = powercut("explore", "odd_name:remove", "--model", "scc")
    assert result.exit_code == ExitCode.CLEAN, result.output
    assert "note" not in result.stdout


def test_control_characters_of_a_name_are_escaped() -> None:
    result = powercut("explore", "odd_name:create", "--model", "scc")
    assert result.exit_code == ExitCode.VIOLATION, result.output
    assert "/red\\x1b[31m" in result.stdout
    assert "\x1b[31m" not in result.stdout


def test_a_name_of_two_lines_does_not_add_a_line_to_the_report() -> None:
    result = powercut("explore", "odd_name:create_two_lines", "--model", "scc")
    assert result.exit_code == ExitCode.VIOLATION, result.output
    lines = result.stdout.splitlines()
    lost = "  lost      directory entry /a\\nsafe on scc \\xff, "
    assert any(line.startswith(lost) for line in lines)
    assert not any(line.startswith("safe on scc") for line in lines)
