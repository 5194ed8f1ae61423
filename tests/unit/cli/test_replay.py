"""``powercut replay`` repeats the failures of ``powercut run``, byte for byte."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from powercut.fuzz.reproducer import FAILURES
from tests.meta.source_tree import run_python
from tests.unit.cli.command_line import powercut, write_project

IN_A_PROCESS = """
import sys
from powercut.cli.main import cli
code = cli(["replay", sys.argv[1]], standalone_mode=False)
print("hypothesis" in sys.modules, code)
"""


def plant(name: str) -> None:
    write_project(Path(), saved_file=f"tests.unit.fuzz.broken:{name}")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reproducer of a campaign on a careless writer."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(tmp_path_factory.mktemp("campaign"))
        plant("careless")
        powercut("run", "saved-file", "--examples", "6", "--steps", "10", "-n", "1")
        return min(FAILURES.glob("*.json")).absolute()


@pytest.fixture
def reproducer(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the reproducer, in the project of a repaired writer."""
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path)
    return Path(shutil.copy(recorded, tmp_path))


def test_same_failure_is_repeated_byte_for_byte(reproducer: Path) -> None:
    plant("careless")
    result = powercut("replay", str(reproducer))
    broken = json.loads(reproducer.read_text("ascii"))["property"]
    assert result.exit_code == ExitCode.VIOLATION
    last = result.stdout.splitlines()[-1]
    assert last.startswith("same failure at step ")
    assert f", byte for byte: {broken}: " in last
    assert f"FAILED  {broken}  on posix" in result.stdout


def test_the_search_for_the_cause_has_a_time_of_its_own(
    reproducer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant("careless")
    monkeypatch.setattr("powercut.cli.replay.REPLAY_SECONDS", 0)
    shown = " ".join(powercut("replay", str(reproducer)).stdout.split())
    assert "the search for a missing fsync was ended after 0 s of processor time" in shown


def test_replay_needs_no_hypothesis(reproducer: Path) -> None:
    plant("careless")
    ran = run_python("-c", IN_A_PROCESS, str(reproducer), cwd=Path.cwd())
    assert ran.stderr == ""
    assert "byte for byte" in ran.stdout
    assert ran.stdout.splitlines()[-1] == "False 1"


def test_repaired_program_passes_now(reproducer: Path) -> None:
    result = powercut("replay", str(reproducer))
    assert result.exit_code == ExitCode.CLEAN
    assert result.stdout.startswith("passes now: ")


def test_another_failure_is_distinguished_from_the_recorded_one(reproducer: Path) -> None:
    plant("raising")
    result = powercut("replay", str(reproducer))
    assert result.exit_code == ExitCode.VIOLATION
    assert "a different failure at step 1: ZeroDivisionError" in result.stdout
    assert "recorded: " in result.stdout


def test_diverging_run_names_the_step(reproducer: Path) -> None:
    plant("careless")
    recorded = json.loads(reproducer.read_text("ascii"))
    asked = next(number for number, step in enumerate(recorded["steps"]) if step["choices"])
    recorded["steps"][asked]["choices"] = ["colour 3 of 0..7"]
    reproducer.write_text(json.dumps(recorded), encoding="ascii")
    result = powercut("replay", str(reproducer))
    assert result.exit_code == ExitCode.DIVERGED
    assert result.stdout.startswith(f"diverged at step {asked + 1}: ")
    assert (
        "\nthe system has changed since, or the target depends on more than its " in result.stdout
    )


def test_other_versions_are_shown_when_the_run_differs(reproducer: Path) -> None:
    plant("raising")
    recorded = json.loads(reproducer.read_text("ascii"))
    recorded["versions"]["apsw"] = "1.0"
    reproducer.write_text(json.dumps(recorded), encoding="ascii")
    assert "recorded with apsw 1.0, replayed with " in powercut("replay", str(reproducer)).stdout
