"""A program that calls ``sys.exit`` is judged like any other, and never ends the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from tests.unit.cli.command_line import powercut

PROGRAM = """
import asyncio, os, struct, sys
from powercut import ActionKind, DiskTarget

def save(process, ack):
    process.close(process.open("/a", os.O_CREAT | os.O_WRONLY))
    ack(1)

def save_and_exit(process, ack):
    save(process, ack)
    sys.exit()

def fail(process, ack):
    sys.exit("no server")

def fail_with_list(process, ack):
    sys.exit(["no server"])

class Panic(BaseException):
    pass

class Unreadable(Exception):
    def __str__(self):
        return self.text

def panic(process, ack):
    raise Panic("broken")

def panics_if_empty(process, known):
    if known.acknowledged and not process.listdir("/"):
        raise BaseExceptionGroup("two", [Panic("broken"), ValueError(1)])

def is_unreadable_if_empty(process, known):
    if known.acknowledged and not process.listdir("/"):
        raise Unreadable

def is_too_short_if_empty(process, known):
    if known.acknowledged and not process.listdir("/"):
        struct.unpack(">I", b"")

def is_interrupted(process, known):
    raise KeyboardInterrupt

def exits_if_empty(process, known):
    if known.acknowledged and not process.listdir("/"):
        sys.exit(0)

def is_cancelled_if_empty(process, known):
    if known.acknowledged and not process.listdir("/"):
        raise asyncio.CancelledError

def exits(process, known):
    sys.exit(0)

class Target(DiskTarget):
    def actions(self):
        return [ActionKind("put", 1, self.put, self.propose)]

    def propose(self, choices):
        if os.environ.get("EXIT_IN") == "propose":
            sys.exit(0)
        return {}

    def before_step(self, choices):
        if os.environ.get("EXIT_IN") == "before_step":
            sys.exit(0)

    def check_recovered(self):
        if os.environ.get("EXIT_IN") == "check_recovered":
            sys.exit(0)

    def recover(self, process):
        self.process = process
        if os.environ.get("EXIT_IN") == "recover" and process.listdir("/"):
            sys.exit(0)
        if os.environ.get("EXIT_IN") == "panic in recover" and process.listdir("/"):
            raise Panic("broken")

    def put(self, arguments):
        self.process.mkdir(f"/{len(self.process.listdir('/'))}")
        if os.environ.get("EXIT_IN") == "put":
            sys.exit(0)
        if os.environ.get("EXIT_IN") == "cancelled put":
            raise asyncio.CancelledError
        if os.environ.get("EXIT_IN") == "panic in put":
            raise Panic("broken")
        if os.environ.get("EXIT_IN") == "unreadable put":
            raise Unreadable
        return "stored"
"""
LINE = PROGRAM[: PROGRAM.index('sys.exit("no server")')].count("\n") + 1
UNREADABLE = "its text is not known, because __str__ raises AttributeError"


@pytest.fixture(autouse=True)
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the program's module, different in each test."""
    name = tmp_path.name
    (tmp_path / f"{name}.py").write_text(PROGRAM, encoding="ascii")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


@pytest.mark.parametrize("processes", ["1", "2"])
def test_exit_of_an_action_is_a_failure_that_is_replayed(
    name: str, processes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXIT_IN", "put")
    result = powercut("run", f"{name}:Target", "--examples", "2", "-n", processes)
    assert result.exit_code == ExitCode.VIOLATION, result.output
    assert "FAILED  ProgramExit" in result.stdout
    assert "the system called sys.exit(0)" in result.stdout
    (file,) = Path(".powercut/failures").iterdir()
    assert "same failure" in powercut("replay", str(file)).stdout


@pytest.mark.parametrize("method", ["propose", "before_step"])
def test_exit_before_an_action_is_a_mistake(
    name: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXIT_IN", method)
    result = powercut("run", f"{name}:Target", "--examples", "2", "-n", "1")
    assert result.exit_code == ExitCode.USAGE, result.output
    assert f" raises SystemExit: 0, at {name}.py:" in result.stderr


def test_exit_at_the_first_start_is_a_mistake(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXIT_IN", "check_recovered")
    result = powercut("run", f"{name}:Target", "--examples", "2", "-n", "1")
    assert result.exit_code == ExitCode.USAGE, result.output
    assert "fails at its first start, before any crash: ProgramExit: the system" in result.stderr


@pytest.mark.parametrize(
    ("place", "failure", "statement"),
    [
        ("recover", "UnreadableAfterCrash", "the system called sys.exit(0)"),
        ("cancelled put", "CallCancelled", "a call of the system was cancelled"),
        ("panic in put", "ProgramPanic", "the system raised MODULE.Panic: broken"),
        ("panic in recover", "UnreadableAfterCrash", "the system raised MODULE.Panic: broken"),
        ("unreadable put", "Unreadable", f"\n  {UNREADABLE}\n"),
    ],
)
def test_any_exception_of_a_recovery_or_an_action_is_a_failure(
    name: str, monkeypatch: pytest.MonkeyPatch, place: str, failure: str, statement: str
) -> None:
    monkeypatch.setenv("EXIT_IN", place)
    result = powercut("run", f"{name}:Target", "--examples", "2", "-n", "1")
    assert result.exit_code == ExitCode.VIOLATION, result.output
    assert f"FAILED  {failure}" in result.stdout
    assert statement.replace("MODULE", name) in result.stdout


@pytest.mark.parametrize(
    ("check", "statement"),
    [
        ("is_cancelled_if_empty", "asyncio.exceptions.CancelledError"),
        ("panics_if_empty", "BaseExceptionGroup: two (2 sub-exceptions)"),
        ("is_too_short_if_empty", "struct.error: unpack requires a buffer of 4 bytes"),
        ("is_unreadable_if_empty", f"MODULE.Unreadable: {UNREADABLE}"),
    ],
)
def test_any_exception_of_a_check_is_a_failure(name: str, check: str, statement: str) -> None:
    result = powercut("explore", f"{name}:save", "--check", f"{name}:{check}")
    assert result.exit_code == ExitCode.VIOLATION, result.output
    raised = statement.replace("MODULE", name)
    assert f"the check raised {raised}\n" in result.stdout


def test_an_interrupt_inside_a_check_is_no_failure(name: str) -> None:
    result = powercut("explore", f"{name}:save", "--check", f"{name}:is_interrupted")
    assert result.exit_code == ExitCode.INTERRUPTED, result.output


def test_a_panic_of_a_workload_is_a_mistake(name: str) -> None:
    result = powercut("explore", f"{name}:panic")
    assert result.exit_code == ExitCode.USAGE
    assert f"failed before any crash: {name}.Panic: broken, at " in result.stderr


def test_exit_of_a_workload_with_status_0_is_its_end(name: str) -> None:
    result = powercut("explore", f"{name}:save_and_exit", "--check", f"{name}:exits_if_empty")
    assert result.exit_code == ExitCode.VIOLATION, result.output
    assert "the check raised SystemExit: 0" in result.stdout


def test_exit_of_a_workload_with_another_status_is_a_mistake(name: str) -> None:
    result = powercut("explore", f"{name}:fail")
    assert result.exit_code == ExitCode.USAGE
    assert result.stderr == (
        f"Error: {name}:fail: the workload failed before any crash: SystemExit: no server, "
        f"at {name}.py:{LINE} in fail\n"
    )
    result = powercut("explore", f"{name}:fail_with_list")
    assert "before any crash: SystemExit: ['no server'], at " in result.stderr


def test_exit_of_a_check_without_any_crash_is_a_mistake(name: str) -> None:
    result = powercut("explore", f"{name}:save", "--check", f"{name}:exits")
    assert result.exit_code == ExitCode.USAGE, result.output
    assert "on the undamaged disk, without any crash, the check raised SystemExit: 0" in (
        result.stderr
    )
