"""``powercut doctor`` shows versions, registry, extras and models, and each problem."""

from __future__ import annotations

from importlib.util import find_spec as real_find_spec
from pathlib import Path

import pytest

from powercut.cli.doctor import MODEL_DESCRIPTIONS
from powercut.cli.exit_code import ExitCode
from sim.disk.crash.persistence import MODELS
from tests.unit.cli.command_line import powercut, write_project


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_doctor_shows_versions_machine_extras_and_models() -> None:
    result = powercut("doctor")
    assert result.exit_code == ExitCode.CLEAN
    for word in ("python", "SQLite", "cores", "hypothesis", "sqlite        installed", *MODELS):
        assert word in result.stdout
    assert "settings      no pyproject.toml" in result.stdout
    assert "workloads     none registered" in result.stdout
    assert result.stdout.splitlines()[-1] == "ready"
    assert list(Path().iterdir()) == []


def test_doctor_describes_every_model_on_a_line_of_its_own() -> None:
    assert list(MODEL_DESCRIPTIONS) == list(MODELS)
    shown = powercut("doctor").stdout.partition("persistence models")[2].splitlines()[1:9]
    assert shown == [f"  {name:14}  {text}" for name, text in MODEL_DESCRIPTIONS.items()]
    assert max(map(len, shown)) <= 80


def test_doctor_counts_the_tags_of_a_long_table(tmp_path: Path) -> None:
    lines = "".join(f"save-{number} = 'os:sync'\n" for number in range(21))
    (tmp_path / "pyproject.toml").write_text(f"[tool.powercut.workloads]\n{lines}", "utf-8")
    assert (
        "workloads     21 registered, the first are save-0, save-1, save-2, save-3, save-4\n"
        in powercut("doctor").stdout
    )


def test_doctor_shows_the_registry_of_the_project(tmp_path: Path) -> None:
    write_project(tmp_path)
    result = powercut("doctor")
    assert f"settings      {tmp_path}/pyproject.toml" in result.stdout
    assert "targets       saved-file, frequent-file, crash-free\n" in result.stdout
    assert "workloads     save, save-without-fsync, directories\n" in result.stdout


def test_failures_that_cannot_be_written_are_a_problem() -> None:
    Path(".powercut").write_text("a file", encoding="ascii")
    result = powercut("doctor")
    assert result.exit_code == ExitCode.USAGE
    assert "problem: cannot write to .powercut/failures: Not a directory" in result.stdout


def test_malformed_settings_are_a_problem() -> None:
    Path("pyproject.toml").write_text("[tool.powercut]\nsead = 1", encoding="ascii")
    result = powercut("doctor")
    assert result.exit_code == ExitCode.USAGE
    assert "problem: " in result.stdout
    assert "unknown key 'sead'" in result.stdout
    assert "settings      not read: see the problem below" in result.stdout
    assert result.stdout.splitlines()[-1] == "not ready"


def test_missing_extra_is_shown_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "powercut.cli.doctor.find_spec",
        lambda name: None if name == "apsw" else real_find_spec(name),
    )
    result = powercut("doctor")
    assert result.exit_code == ExitCode.CLEAN
    assert "sqlite        apsw not installed: pip install 'powercut[sqlite]'" in result.stdout


def test_missing_private_name_of_hypothesis_is_a_limitation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("hypothesis.internal.conjecture.providers._get_local_constants")
    result = powercut("doctor")
    assert result.exit_code == ExitCode.CLEAN
    assert (
        "limitation: Hypothesis has no hypothesis.internal.conjecture.providers."
        "_get_local_constants: the examples of a derandomized profile depend on the modules "
        "imported"
    ) in result.stdout


@pytest.mark.parametrize(
    ("table", "kind"), [("targets", "target"), ("workloads", "workload"), ("mutants", "mutant")]
)
def test_an_entry_that_cannot_be_imported_is_a_problem(table: str, kind: str) -> None:
    Path("pyproject.toml").write_text(
        f"[tool.powercut.{table}]\ngone = 'no_such_module:thing'\nbad = 'os:no_such_name'\n",
        encoding="ascii",
    )
    result = powercut("doctor")
    assert result.exit_code == ExitCode.USAGE
    place = f"it is registered under [tool.powercut.{table}] in {Path.cwd()}/pyproject.toml"
    problems = [line for line in result.stdout.splitlines() if line.startswith("problem: ")]
    missing = (
        f"there is no module 'no_such_module' in {Path.cwd()}, nor installed; "
        "change to its directory, or install it"
    )
    assert problems == [
        f"problem: {kind} 'gone': {missing}; {place}",
        f"problem: {kind} 'bad': module 'os' has no object 'no_such_name'; {place}",
    ]
    assert result.stdout.splitlines()[-1] == "not ready"


def test_entries_that_can_be_imported_are_no_problem(tmp_path: Path) -> None:
    write_project(tmp_path)
    result = powercut("doctor")
    assert result.exit_code == ExitCode.CLEAN
    assert "problem" not in result.stdout
