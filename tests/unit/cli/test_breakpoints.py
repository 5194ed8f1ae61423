"""``breakpoint()`` is refused where its prompt would not be seen; ``replay`` stops at it once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from powercut.breakpoints import refuse_breakpoint
from powercut.cli.exit_code import ExitCode
from tests.unit.cli.command_line import powercut

TARGET = """
import os
from tests.unit.fuzz.broken import UnsyncedCounter

class Counter(UnsyncedCounter):
    def check_recovered(self):
        if "GO_ON" not in os.environ:
            breakpoint()
        super().check_recovered()
"""
WORKLOAD = """
import os

def save({process}ack):
    with {file}("a", "w") as file:
        file.write("1")
    ack("1")

def present({process}known):
    if "GO_ON" not in os.environ:
        breakpoint()
    if known.acknowledged:
        with {file}("a") as file:
            assert file.read() == "1"
"""
REMEDY = (
    "; the output of many runs and checks is dropped, so no prompt would be seen; "
    "`powercut replay FILE` repeats one failure, and stops there"
)


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions in which a debugger, which goes on at once, has stopped."""
    found: list[str] = []

    def stop() -> None:
        found.append(sys._getframe(1).f_code.co_name)

    monkeypatch.setattr(sys, "breakpointhook", stop)
    return found


def write_target(module: str) -> str:
    Path(f"{module}.py").write_text(TARGET, "ascii")
    return f"{module}:Counter"


def write_workload(module: str, *, is_unmodified: bool) -> None:
    process, file = ("", "open") if is_unmodified else ("process, ", "process.open_file")
    source = WORKLOAD.format(process=process, file=file)
    Path(f"{module}.py").write_text(source, "ascii")


def failure_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """Run a command without its breakpoints; return a file of a failure that it has found."""
    with monkeypatch.context() as context:
        context.setenv("GO_ON", "1")
        assert powercut(*arguments).exit_code == ExitCode.VIOLATION
    (file, *_) = Path(".powercut/failures").glob("*.json*")
    return str(file)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_breakpoint_in_a_target_is_refused_with_its_line(processes: str) -> None:
    module = f"stopping_{processes}"
    target = write_target(module)
    result = powercut("run", target, "--examples", "3", "-n", processes)
    assert result.exit_code == ExitCode.USAGE
    place = f", at {module}.py:8 in Counter.check_recovered"
    assert result.stderr == f"Error: breakpoint() was called{place}{REMEDY}\n"


@pytest.mark.parametrize("is_unmodified", [False, True])
def test_breakpoint_in_a_check_is_refused_with_its_line(is_unmodified: bool) -> None:
    module = f"stopping_check_{is_unmodified}".lower()
    write_workload(module, is_unmodified=is_unmodified)
    result = powercut("explore", f"{module}:save", "--check", f"{module}:present")
    assert result.exit_code == ExitCode.USAGE
    assert result.stderr.startswith(f"Error: {module}:save: breakpoint() was called, at ")
    assert result.stderr.endswith(f"{module}.py:11 in present{REMEDY}\n")


def test_replay_of_a_run_stops_at_a_breakpoint_in_that_run_alone(
    stops: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = write_target("replayed")
    file = failure_of(monkeypatch, "run", target, "--examples", "3", "-n", "1")
    result = powercut("replay", file)
    assert result.exit_code == ExitCode.VIOLATION, result.output
    assert "same failure" in result.stdout
    assert "  repair  " in result.stdout
    assert set(stops) == {"check_recovered"}
    assert len(stops) <= 3


def test_replay_of_an_exploration_stops_at_a_breakpoint_once(
    stops: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_workload("explored", is_unmodified=False)
    file = failure_of(monkeypatch, "explore", "explored:save", "--check", "explored:present")
    result = powercut("replay", file)
    assert result.exit_code == ExitCode.VIOLATION, result.output
    assert "the recorded crash fails in the same way" in result.stdout
    assert "fails again" in result.stdout
    assert stops == ["present"]


def test_breakpoints_that_are_switched_off_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    refuse_breakpoint()


def test_the_debugger_is_back_after_a_command() -> None:
    before = sys.breakpointhook
    powercut("run", write_target("left"), "--examples", "1", "-n", "1")
    assert sys.breakpointhook is before
