"""``powercut explore`` gives a verdict for each model, on registered workloads and on yours."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from sim.disk.crash.persistence import MODELS
from tests.unit.cli.command_line import json_of, powercut, write_project
from tests.unit.explorer.test_interposed_check import reads_the_clock
from tests.unit.explorer.workloads import all_are_there, always_fails
from tests.unit.fuzz.project import PROJECT

QUICK = ("--states", "64")
STORE = """
import os

def save(disk, ack):
    for number in (b"1", b"2"):
        ack.attempt({"/n": number})
        with_barrier(disk, number)
        ack({"/n": number})

def with_barrier(disk, number):
    fd = disk.open("/n.tmp", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    disk.write(fd, number)
    disk.fsync(fd)
    disk.close(fd)
    disk.replace("/n.tmp", "/n")
    fd = disk.open("/", os.O_RDONLY | os.O_DIRECTORY)
    disk.fsync(fd)
    disk.close(fd)

def pessimist(disk, known):
    raise AssertionError(f"nothing is good enough, not even {known.acknowledged}")

def judged(disk, ack):
    save(disk, ack)

judged.check = pessimist
"""

INTERRUPTED = """
import os
import signal
from pathlib import Path

from oracles.violation import LostAck

SENT = Path("sent")

def save(disk, ack):
    for number in range(20):
        disk.close(disk.open(f"/{number}", os.O_CREAT | os.O_WRONLY))
        ack(number)

def is_first():
    try:
        SENT.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True

def check(disk, known, signals=1):
    # Two processes may come here at the same time.
    if len(known.acknowledged) == 5 and is_first():
        for _ in range(signals):
            for process in {os.getpid(), int(os.environ["COMMAND"])}:
                os.kill(process, signal.SIGINT)
    if len(disk.listdir("/")) < len(known.acknowledged):
        raise LostAck("a file is lost")

def twice(disk, known):
    check(disk, known, signals=2)
"""

MANY = "\n\ndef many(disk, ack):\n" + "".join(
    f'    disk.close(disk.open("/{name}", os.O_CREAT | os.O_WRONLY))\n    ack({{"/{name}": b""}})\n'
    for name in "abcdefg"
)


@pytest.fixture(autouse=True)
def failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of kept failures; the command runs in the project of the engine's own tests."""
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "failures"
    monkeypatch.setattr("powercut.cli.finding_keeper.FAILURES", folder)
    return folder


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of a module in the current directory."""
    name = f"store_of_{request.node.name}"
    (tmp_path / f"{name}.py").write_text(STORE, encoding="ascii")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


@pytest.mark.parametrize("tag", PROJECT.config.workloads)
def test_workloads_hold_exactly_if_they_are_sound(tag: str) -> None:
    result = powercut("explore", tag, "--model", "posix", *QUICK)
    if PROJECT.workload(tag).sound:
        assert result.exit_code == ExitCode.CLEAN, result.stdout
        assert result.stdout.splitlines()[-2] == "safe on posix"
    else:
        assert result.exit_code == ExitCode.VIOLATION
        assert result.stdout.splitlines()[-2] == "unsafe on posix"


def test_without_a_workload_the_sound_workloads_run() -> None:
    found = json_of(powercut("explore", "--model", "scc", "--json", "-"))
    assert list(found["targets"]) == ["save", "directories"]
    assert found["verdict"] == "clean"
    states = [target["scc"]["states"] for target in found["targets"].values()]
    assert found["models"] == {
        "scc": {
            "safe": True,
            "states": sum(states),
            "executions": sum(states),
            "survivor_sets": None,
            "exhaustive": True,
            "how": "exhaustive",
            "within": [],
            "stopped": False,
            "first_failure": None,
        }
    }


def test_verdict_names_the_models_and_shows_the_first_failure() -> None:
    result = powercut("explore", "save-without-fsync")
    assert result.exit_code == ExitCode.VIOLATION
    assert re.search(r"^ xfs +unsafe +24 +6 +exhaustive +TornRecord", result.stdout, re.MULTILINE)
    assert "FAILED  TornRecord  corruption, on a real file system (ext4)" in result.stdout
    assert re.search(
        r"  cause     no fsync of /state\.tmp between write at \S+:\d+ and rename at \S+:\d+\n",
        result.stdout,
    )
    assert result.stdout.splitlines()[-2] == (
        "safe on scc and ext4-journal; "
        "unsafe on ext4, ext4-ordered, ext4-writeback, xfs, btrfs and posix"
    )


def test_json_has_the_verdict_of_each_model() -> None:
    found = json_of(powercut("explore", "save-without-fsync", "--json", "-"))
    assert (found["schema"], found["verdict"]) == (1, "violation")
    assert list(found["models"]) == list(MODELS)
    assert found["models"]["scc"] == {
        "safe": True, "states": 18, "executions": 18, "survivor_sets": None, "exhaustive": True,
        "how": "exhaustive", "within": [], "stopped": False, "first_failure": None,
    }  # fmt: skip
    assert found["models"]["xfs"]["first_failure"] == {
        "property": "TornRecord",
        "statement": "/state holds neither an acknowledged content nor one in flight",
        "crashes": ["3 after power-cut lost=3"],
    }
    (finding,) = found["findings"]["save-without-fsync"]
    assert finding["weakest"] == "on a real file system (ext4)"
    assert finding["models"] == list(MODELS)[2:]
    assert list(finding["harms"]) == ["corruption"]
    assert Path(finding["reproducer"]).is_file()


def test_beyond_the_limit_of_states_the_verdict_is_sampled() -> None:
    found = json_of(powercut("explore", "directories", "--model", "posix", *QUICK,
                             "--engine", "brute", "--json", "-"))  # fmt: skip
    assert found["models"]["posix"]["exhaustive"] is False
    assert found["models"]["posix"]["how"] == "sampled"


@pytest.mark.parametrize("engine", ["lazy", "auto"])
def test_beyond_the_limit_of_states_every_survivor_set_is_decided(engine: str) -> None:
    arguments = ("explore", "directories", "--model", "posix", *QUICK, "--engine", engine)
    found = json_of(powercut(*arguments, "--json", "-"))["models"]["posix"]
    assert (found["safe"], found["exhaustive"], found["how"]) == (True, True, "exhaustive")
    assert found["executions"] < found["survivor_sets"]
    shown = f" posix +safe +{found['executions']} +{found['survivor_sets']:,} +0 +exhaustive"
    assert re.search(shown, powercut(*arguments).stdout)


def test_unregistered_workload_is_found_in_the_current_directory(store: str) -> None:
    result = powercut("explore", f"{store}:save")
    assert result.exit_code == ExitCode.CLEAN, result.output
    assert result.stdout.splitlines()[-2].startswith("safe on scc, ext4-journal")


def test_check_is_an_option_or_an_attribute(store: str) -> None:
    for arguments in ([f"{store}:save", "--check", f"{store}:pessimist"], [f"{store}:judged"]):
        result = powercut("explore", *arguments, "--model", "scc")
        assert result.exit_code == ExitCode.USAGE
        assert "AssertionError: nothing is good enough" in result.stderr


def test_strict_is_an_option() -> None:
    workload = f"{reads_the_clock.__module__}:{reads_the_clock.__name__}"
    result = powercut("explore", workload, "--strict")
    assert result.exit_code == ExitCode.USAGE
    assert "time.time was called" in result.stderr


def test_every_finding_is_kept_and_its_disk_dumped(failures: Path, tmp_path: Path) -> None:
    dumps = tmp_path / "dumps"
    result = powercut("explore", "save-without-fsync", "--dump", str(dumps))
    (kept,) = failures.iterdir()
    (dumped,) = dumps.iterdir()
    assert f"  replay    powercut replay {kept}\n  dump      {dumped}\n" in result.stdout
    assert kept.stem == dumped.name
    assert (dumped / "state").read_bytes() == b""
    again = powercut("explore", "save-without-fsync", "--dump", str(dumps))
    assert f"  dump      cannot dump to {dumped}: File exists\n" in again.stdout


def test_a_finding_that_cannot_be_kept_is_printed_all_the_same(
    failures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures.write_bytes(b"in the way")
    result = powercut("explore", "save-without-fsync", "--model", "xfs")
    assert result.exit_code == ExitCode.VIOLATION
    assert "  replay    not kept: cannot write the failure " in result.stdout


def test_all_failures_are_printed_if_asked() -> None:
    result = powercut("explore", "save-without-fsync", "--model", "xfs", "--all")
    lines = [line for line in result.stdout.splitlines() if line.startswith("  xfs  ")]
    assert len(lines) == 6
    assert "3 after power-cut lost=3: /state holds neither" in lines[0]


def test_more_than_five_findings_are_printed_in_short(store: str) -> None:
    with Path(f"{store}.py").open("a", encoding="ascii") as file:
        file.write(MANY)
    result = powercut("explore", f"{store}:many", "--model", "posix")
    assert result.stdout.count("\n  cause ") == 5
    assert (
        len(re.findall(r"^FAILED  LostAck  on posix: no fsync", result.stdout, re.MULTILINE)) == 2
    )
    assert "repair    with these 7 fsyncs, none of " in result.stdout


def test_processes_do_not_change_the_verdict(store: str) -> None:
    outputs = {
        powercut("explore", f"{store}:judged", "--model", "ext4", "-n", processes).stdout
        for processes in ("1", "3")
    }
    assert len(outputs) == 1


def test_a_check_that_fails_without_a_crash_is_refused() -> None:
    check = "tests.unit.explorer.workloads:always_fails"
    result = powercut("explore", "directories", "--model", "scc", "--check", check)
    assert result.exit_code == ExitCode.USAGE
    assert result.stderr == (
        "Error: directories: on the undamaged disk, without any crash, the check failed: "
        f"AssertionError: always, at {_last_line_of(always_fails)}; correct the check, or the "
        "workload\n"
    )


def test_a_check_that_demands_what_is_not_acknowledged_yet_is_refused() -> None:
    check = "tests.unit.explorer.workloads:all_are_there"
    result = powercut("explore", "directories", "--model", "scc", "--check", check)
    assert result.exit_code == ExitCode.USAGE
    assert result.stderr == (
        "Error: directories: on the disk with which the workload starts, the check failed: "
        f"AssertionError: a directory is lost, at {_last_line_of(all_are_there)}; nothing is "
        "acknowledged there, so nothing can be lost: correct the check, which may demand only "
        "what is acknowledged\n"
    )


def _last_line_of(check: Callable[..., None]) -> str:
    lines, first = inspect.getsourcelines(check)
    return f"{inspect.getfile(check)}:{first + len(lines) - 1}"


@pytest.mark.parametrize(
    ("workload", "sentence"),
    [
        (
            "calls_fdopen",
            (
                "fdopen is not modelled by the simulated disk; call OsModule(process).fdopen; "
                "called at {file}:5 in calls_fdopen"
            ),
        ),
        (
            "acknowledges_a_directory",
            (
                "on the undamaged disk, without any crash, the check raised IsADirectoryError: "
                "[Errno 21] a directory has no content to compare: '/d'; correct the check, or the "
                "workload"
            ),
        ),
    ],
)
def test_mistake_of_a_workload_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workload: str, sentence: str
) -> None:
    module = f"mistaken_{workload}"
    (tmp_path / f"{module}.py").write_text(
        """
import os

def calls_fdopen(process, ack):
    process.fdopen(process.open("/f", os.O_CREAT | os.O_WRONLY), "wb").close()

def acknowledges_a_directory(process, ack):
    process.mkdir("/d")
    ack({"/d": b""})
""",
        encoding="ascii",
    )
    monkeypatch.syspath_prepend(tmp_path)
    result = powercut("explore", f"{module}:{workload}", "--model", "scc")
    file = tmp_path / f"{module}.py"
    assert result.exit_code == ExitCode.USAGE
    assert result.stderr == f"Error: {module}:{workload}: {sentence.format(file=file)}\n"


@pytest.mark.parametrize(("check", "is_noted"), [("all_are_made", False), ("never_fails", True)])
def test_a_check_that_passes_whatever_is_lost_is_noted(check: str, is_noted: bool) -> None:
    check = f"tests.unit.explorer.workloads:{check}"
    result = powercut("explore", "directories", "--model", "scc", "--check", check)
    assert result.exit_code == ExitCode.CLEAN
    note = "\nnote      the check passes also if everything is lost that was acknowledged; it must"
    assert (note in result.stdout) == is_noted


def test_a_workload_is_stopped_when_its_time_is_over() -> None:
    arguments = ("explore", "directories", "--model", "posix", "--seconds", "0.001")
    result = powercut(*arguments)
    assert result.exit_code == ExitCode.GOAL_MISSED
    assert re.search(r"^ posix +unknown +\d+ +0 +stopped", result.stdout, re.MULTILINE)
    assert result.stdout.splitlines()[-2] == "stopped before a failure on posix"
    found = json_of(powercut(*arguments, "--json", "-"))
    assert found["models"]["posix"]["exhaustive"] is False
    assert found["verdict"] == "stopped"


def test_a_check_with_state_is_a_usage_mistake() -> None:
    check = "tests.unit.explorer.stateful_check:reads_another_file_each_time"
    lazy = ("--model", "posix", "--engine", "lazy", "--check", check)
    result = powercut("explore", "directories", *lazy)
    assert result.exit_code == ExitCode.USAGE
    assert "the check is not deterministic: after the same" in result.stderr
    assert result.stderr.endswith(
        "; --engine brute allows it to depend on its process id or on the clock\n"
    )


@pytest.mark.parametrize(("check", "processes"), [("check", "1"), ("check", "2"), ("twice", "1")])
def test_an_interrupted_exploration_reports_what_it_has_found(
    tmp_path: Path, failures: Path, monkeypatch: pytest.MonkeyPatch, check: str, processes: str
) -> None:
    name = f"interrupted_{check}_in_{processes}"
    (tmp_path / f"{name}.py").write_text(INTERRUPTED, "utf-8")
    monkeypatch.setenv("COMMAND", str(os.getpid()))
    result = powercut(
        "explore", f"{name}:save", "--check", f"{name}:{check}", "-n", processes,
        "--engine", "brute",
    )  # fmt: skip
    assert result.exit_code == ExitCode.INTERRUPTED, result.output
    assert result.stderr == "interrupted: these are the results so far\n"
    assert "FAILED  LostAck" in result.stdout
    assert len(list(failures.iterdir())) == 1


def test_a_second_interrupt_ends_an_exploration_at_once(
    tmp_path: Path, failures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "interrupted_twice.py").write_text(INTERRUPTED, "utf-8")
    monkeypatch.setattr("powercut.cli.interruption.ONE_INTERRUPTION_S", 0)
    monkeypatch.setenv("COMMAND", str(os.getpid()))
    name = "interrupted_twice"
    result = powercut("explore", f"{name}:save", "--check", f"{name}:twice", "-n", "1")
    assert result.exit_code == ExitCode.INTERRUPTED
    assert result.stderr.splitlines()[-1] == "interrupted"
    assert not failures.exists()
