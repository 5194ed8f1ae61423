"""A target whose step does not end, or that ends its process: one sentence with the line."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from powercut.fuzz import step_watch
from powercut.fuzz.step_watch import StepHangs, StepWatch
from tests.meta.source_tree import run_python
from tests.unit.cli.command_line import CARELESS, powercut

PROGRAM = """
import os, threading
from powercut import ActionKind, DiskTarget

def is_in(method):
    return os.environ.get("STOP_IN") == method

def loop():
    while True:
        try:
            raise OSError
        except Exception:
            pass

def swallow():
    while True:
        try:
            threading.Event().wait()
        except:
            pass

def wait():
    threading.Event().wait()

def end():
    os._exit(0)

stop = globals()[os.environ["STOP_BY"]]

class Target(DiskTarget):
    def __init__(self):
        is_in("__init__") and stop()

    def actions(self):
        return [ActionKind("put", 1, self.put, self.propose)]

    def propose(self, choices):
        is_in("propose") and stop()
        return {}

    def recover(self, process):
        self.process = process
        is_in("recover") and process.listdir("/") and stop()

    def check_recovered(self):
        is_in("check_recovered") and self.process.listdir("/") and stop()

    def put(self, arguments):
        self.process.mkdir(f"/{len(self.process.listdir('/'))}")
        is_in("put") and stop()
        return "stored"
"""
METHODS = ["__init__", "propose", "put", "recover", "check_recovered"]
IMPATIENT = "import powercut.fuzz.step_watch as watch; watch.SECONDS = watch._INTERRUPTS = 2"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_watch, "SECONDS", 5)
    monkeypatch.setattr(step_watch, "_TICK_SECONDS", 0.1)


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


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", ["loop", "wait"])
def test_step_that_does_not_end_is_a_mistake(
    name: str, method: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOP_IN", method)
    monkeypatch.setenv("STOP_BY", way)
    result = powercut("run", f"{name}:Target", "--seconds", "1", "-n", "1")
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert result.stderr.startswith(
        f"Error: a step of target '{name}:Target' did not end within 5 s; it is at {name}.py:"
    )
    assert result.stderr.endswith(f" in {way}; end the loop or the wait\n")
    if way == "wait":
        assert f"{name}.py:{line_of('def wait') + 1} in" in result.stderr


def test_findings_before_a_hang_are_reported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOP_IN", "put")
    monkeypatch.setenv("STOP_BY", "wait")
    result = powercut("run", CARELESS, f"{name}:Target", "--examples", "20", "-n", "1")
    assert result.exit_code == ExitCode.VIOLATION, result.output
    assert "a violation was found" in result.stdout
    assert f"Error: a step of target '{name}:Target' did not end within 5 s" in result.stderr


def test_reduction_that_does_not_end_leaves_the_failure_as_it_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "powercut.cli.findings.reduced", lambda *_arguments: threading.Event().wait()
    )
    result = powercut("run", CARELESS, "--examples", "20", "-n", "1")
    assert result.exit_code == ExitCode.VIOLATION, result.output
    assert f"not reduced  {CARELESS}: " in result.stdout
    assert "a step of target" in result.stdout
    assert "powercut replay" in result.stdout


@pytest.mark.parametrize("processes", ["1", "2"])
def test_step_that_catches_the_interrupts_ends_with_its_process(
    name: str, processes: str, tmp_path: Path
) -> None:
    script = (
        f"{IMPATIENT}\nif __name__ == '__main__':\n    from powercut.cli.main import main; main()"
    )
    (tmp_path / "impatient.py").write_text(script, encoding="ascii")
    result = run_python(
        "impatient.py", "run", f"{name}:Target", "--seconds", "1", "-n", processes,
        cwd=tmp_path, environment={"STOP_IN": "put", "STOP_BY": "swallow"},
    )  # fmt: skip
    assert result.returncode == (ExitCode.USAGE if processes == "1" else ExitCode.HARNESS_FAILED)
    assert (
        f"Error: a step of target '{name}:Target' did not end within 2 s; it is at {name}.py:"
        in result.stderr
    )


def test_step_that_catches_an_interrupt_and_ends_is_a_mistake() -> None:
    watch = StepWatch()

    def catch_an_interrupt() -> None:
        with watch.watching("store"), suppress(KeyboardInterrupt):
            threading.Event().wait()

    with pytest.raises(StepHangs, match="did not end within 5 s"):
        catch_an_interrupt()


def test_steps_that_end_and_a_debugger_are_let_alone() -> None:
    watch = StepWatch()
    with watch.watching("store"):
        for _ in range(20):
            watch.steps += 1
            threading.Event().wait(0.1)
        at_a_prompt = {"__name__": "pdb", "event": threading.Event()}
        exec("event.wait(1.5)", at_a_prompt)


@pytest.mark.parametrize(
    ("method", "processes"), [("put", "2"), *((method, "1") for method in METHODS[:-1])]
)
def test_os_exit_is_refused(
    name: str, method: str, processes: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STOP_IN", method)
    monkeypatch.setenv("STOP_BY", "end")
    result = powercut("run", f"{name}:Target", "--examples", "2", "-n", processes)
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert result.stderr == (
        f"Error: os._exit was called inside a simulated world, at {tmp_path}/{name}.py:"
        f"{line_of('os._exit')} in end; it would end powercut as well; raise an exception, or "
        "return\n"
    )
