"""A target that ends its process: one sentence with the line."""

from __future__ import annotations

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


def line_of(text: str) -> int:
    return PROGRAM[: PROGRAM.index(text)].count("\n") + 1


@pytest.mark.parametrize(
    ("method", "processes"), [("put", "2"), *((method, "1") for method in METHODS)]
)
def test_os_exit_is_refused(
    module: str, method: str, processes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(f"{module}.py").write_text(PROGRAM, encoding="ascii")
    monkeypatch.setenv("EXIT_IN", method)
    result = powercut("run", f"{module}:Target", "--examples", "2", "-n", processes)
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert result.stderr == (
        f"Error: os._exit was called inside a simulated world, at {Path.cwd()}/{module}.py:"
        f"{line_of('os._exit')} in end; it would end powercut as well; raise an exception, or "
        "return\n"
    )
