"""A mistake that shows late does not hide the findings before it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from powercut.explorer.judge import Judge
from powercut.explorer.recorded_workload import RecordedWorkload
from powercut.explorer.verdicts import Exploration
from sim.disk.crash.persistence import PersistenceModel
from sim.errors import HarnessError
from tests.unit.cli.command_line import powercut

WORKLOAD = """
import os

def save(disk, ack):
    disk.close(disk.open("/a", os.O_CREAT | os.O_WRONLY))
    ack("a")

def check(disk, known):
    assert not known.acknowledged or "a" in disk.listdir("/")
"""


@pytest.fixture
def failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "failures"
    monkeypatch.setattr("powercut.cli.finding_keeper.FAILURES", folder)
    return folder


@pytest.mark.parametrize("fails_under", ["posix", "scc"])
def test_the_findings_of_the_models_before_it_are_reported(
    tmp_path: Path, failures: Path, monkeypatch: pytest.MonkeyPatch, fails_under: str
) -> None:
    (tmp_path / "late_mistake.py").write_text(WORKLOAD, "utf-8")
    explored = Judge.explore

    def explore(judge: Judge, workload: RecordedWorkload, model: PersistenceModel) -> Exploration:
        if model.name == fails_under:
            raise HarnessError("the check is not deterministic")
        return explored(judge, workload, model)

    monkeypatch.setattr(Judge, "explore", explore)
    result = powercut("explore", "late_mistake:save", "--check", "late_mistake:check")
    assert result.exit_code == ExitCode.USAGE, result.output
    assert "Error: late_mistake:save: the check is not deterministic" in result.stderr
    has_found = fails_under == "posix"
    assert ("FAILED  CheckFailed" in result.stdout) == has_found
    assert ("powercut replay" in result.stdout) == has_found
    assert len(list(failures.iterdir()) if failures.exists() else ()) == has_found


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (
            ZeroDivisionError("a bug"),
            ExitCode.INTERNAL_ERROR,
            "ZeroDivisionError: a bug\n\npowercut itself failed while it explained a failure;",
        ),
        (
            HarnessError("the check has ended"),
            ExitCode.USAGE,
            "Error: late_mistake:save: the check has ended",
        ),
    ],
)
def test_findings_are_reported_if_the_search_for_barriers_fails(
    tmp_path: Path,
    failures: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    code: ExitCode,
    sentence: str,
) -> None:
    (tmp_path / "late_mistake.py").write_text(WORKLOAD, "utf-8")

    def fail(_unsafe: object) -> object:
        raise error

    monkeypatch.setattr("powercut.explorer.diagnosis._Search", fail)
    arguments = "late_mistake:save", "--check", "late_mistake:check", "--json", "report.json"
    result = powercut("explore", *arguments)
    assert result.exit_code == code, result.output
    assert sentence in result.stderr
    assert "FAILED  CheckFailed" in result.stdout
    assert "powercut replay" in result.stdout
    assert len(list(failures.iterdir())) == 1
    report = json.loads(Path("report.json").read_text("ascii"))
    assert report["verdict"] == "violation"
    assert len(report["findings"]["late_mistake:save"]) == 1


TWO_FILES = """
import os

def save(disk, ack):
    for name in ("/a", "/b"):
        disk.close(disk.open(name, os.O_CREAT | os.O_WRONLY))
        ack(name)

def check(disk, known):
    names = disk.listdir("/")
    if "b" in names:
        return True
    assert not known.acknowledged or "a" in names
"""


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_findings_before_it_under_the_same_model_are_reported(
    tmp_path: Path, failures: Path, processes: str
) -> None:
    (tmp_path / "later_mistake.py").write_text(TWO_FILES, "utf-8")
    command = ("explore", "later_mistake:save", "--check", "later_mistake:check")
    result = powercut(*command, "--model", "posix", "-n", processes)
    assert result.exit_code == ExitCode.USAGE, result.output
    assert "FAILED  CheckFailed" in result.stdout
    assert "stopped" in result.stdout
    assert "powercut replay" in result.stdout
    assert "Error: later_mistake:save: the check returned True" in result.stderr
    assert len(list(failures.iterdir())) == 1
