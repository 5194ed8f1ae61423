"""A mistake in a target's own code is one sentence with its place, and no failure of its system."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from tests.unit.cli.command_line import powercut

TARGET = """
from oracles.violation import LostAck
from powercut import ActionKind, DiskTarget

class Counting(DiskTarget):
    def __init__(self):
        self.steps = 0

    def actions(self):
        return [ActionKind("put", 1, self.put)]

    def recover(self, process):
        self.process = process

    def put(self, arguments):
        self.process.mkdir(f"/{len(self.process.listdir('/'))}")
        self.steps += 1
        return "stored"

    def fail_later(self, _choices=None):
        if self.steps > 3:
            raise KeyError("four")
        return {}

class InPropose(Counting):
    def actions(self):
        return [ActionKind("put", 1, self.put, self.fail_later)]

class InReady(Counting):
    def actions(self):
        return [ActionKind("put", 1, self.put, ready=lambda: self.fail_later() == {})]

class InBeforeStep(Counting):
    def before_step(self, choices):
        self.fail_later()

class WithoutOptions(Counting):
    def actions(self):
        return [ActionKind("put", 1, self.put, lambda choices: {"key": choices.pick("key", "")})]

class MostlyFailing(Counting):
    turn_steps = 1

    def actions(self):
        return [ActionKind("put", 1, self.lose, self.choose)]

    def choose(self, choices):
        return {"number": {number: number for number in range(9)}[choices.integer("n", 0, 9)]}

    def lose(self, arguments):
        raise LostAck("gone")
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of a module in the current directory, different in each test."""
    name = "".join(c if c.isalnum() else "_" for c in f"module_{request.node.name}")
    (tmp_path / f"{name}.py").write_text(TARGET, encoding="ascii")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    return name


@pytest.mark.parametrize("processes", ["1", "2"])
@pytest.mark.parametrize(
    ("target", "member"),
    [
        ("InPropose", "propose of action 'put'"),
        ("InReady", "ready of action 'put'"),
        ("InBeforeStep", "before_step"),
    ],
)
def test_exception_that_prepares_a_step_is_a_mistake_at_its_place(
    module: str, target: str, member: str, processes: str
) -> None:
    result = powercut("run", f"{module}:{target}", "--examples", "3", "-n", processes)
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    line = TARGET.splitlines().index('            raise KeyError("four")') + 1
    assert result.stderr == (
        f"Error: {member} raises KeyError: 'four', at {module}.py:{line} in Counting.fail_later; "
        "it prepares a step, and must return in every state of the system: only actions, "
        "recoveries and checks may fail\n"
    )


def test_mistake_after_a_failure_ends_the_campaign_and_the_failure_is_reported(module: str) -> None:
    result = powercut("run", f"{module}:MostlyFailing", "--examples", "99", "-n", "1")
    assert result.exit_code == ExitCode.VIOLATION, result.output
    assert "FAILED  LostAck" in result.stdout
    assert result.stderr.startswith("Error: propose of action 'put' raises KeyError: 9, at ")
    assert result.stderr.count("\n") == 1


def test_choice_among_nothing_is_a_mistake_at_its_place(module: str) -> None:
    result = powercut("run", f"{module}:WithoutOptions", "--examples", "3", "-n", "1")
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert "raises NothingToChoose: nothing to choose from: key[0..-1], at " in result.stderr
    assert result.stderr.count("\n") == 1
