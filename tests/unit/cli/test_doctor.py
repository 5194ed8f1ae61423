"""``powercut doctor`` shows what matters, and says what has to be put right."""

from __future__ import annotations

from pathlib import Path

import pytest

from powercut.cli.exit_code import ExitCode
from sim.disk.crash.persistence import MODELS
from tests.unit.cli.command_line import powercut


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_doctor_shows_versions_machine_and_models() -> None:
    result = powercut("doctor")
    assert result.exit_code == ExitCode.CLEAN
    for word in ("python", "SQLite", "cores", "Hypothesis", *MODELS):
        assert word in result.stdout
    assert result.stdout.splitlines()[-1] == "ready"
    assert list(Path().iterdir()) == []


def test_doctor_says_that_failures_cannot_be_written() -> None:
    Path(".powercut").write_text("a file", encoding="ascii")
    result = powercut("doctor")
    assert result.exit_code == ExitCode.USAGE
    assert "problem: cannot write to .powercut/failures: Not a directory" in result.stdout


def test_doctor_says_that_hypothesis_is_not_the_pinned_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("powercut.cli.doctor.requires", lambda _: ["hypothesis==0.1"])
    result = powercut("doctor")
    assert result.exit_code == ExitCode.USAGE
    assert "and must be 0.1: " in result.stdout
