"""A target that ends its process: one sentence with the line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from tests.unit.cli.command_line import powercut

PROGRAM = """
import os
from powercut import ActionKind, DiskTarget

def is_in(method):
    return os.environ.get("EXIT_IN") == method

def end():
    os._exit(0)

class Target(DiskTarget):
    def __init__(self):
        is_in("__init__") and end()

    def actions(self):
        return [ActionKind("put", 1, self.put, self.propose)]

    def propose(self, choices):
        is_in("propose") and end()
        return {}

    def recover(self, process):
        self.process = process
        is_in("recover") and process.listdir("/") and end()

    def put(self, arguments):
        self.process.mkdir(f"/{len(self.process.listdir('/'))}")
        is_in("put") and end()
        return "stored"
"""
METHODS = ["__init__", "propose", "put", "recover"]


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of the program's module, different in each test."""
    name = "".join(c if c.isalnum() else "_" for c in request.node.name)
    (tmp_path / f"{name}.py").write_text(PROGRAM, encoding="ascii")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    return name


def line_of(text: str) -> int:
    return PROGRAM[: PROGRAM.index(text)].count("\n") + 1


@pytest.mark.parametrize(
    ("method", "processes"), [("put", "2"), *((method, "1") for method in METHODS)]
)
def test_os_exit_is_refused(
    name: str, method: str, processes: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EXIT_IN", method)
    result = powercut("run", f"{name}:Target", "--examples", "2", "-n", processes)
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert result.stderr == (
        f"Error: os._exit was called inside a simulated world, at {tmp_path}/{name}.py:"
        f"{line_of('os._exit')} in end; it would end powercut as well; raise an exception, or "
        "return\n"
    )
