"""The settings profiles mean what their names say, wherever they are registered."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.meta.source_tree import run_python

REPORT = """
import json
from pathlib import Path
from hypothesis import settings
from powercut.fuzz.hypothesis_settings import install_profiles
from powercut.fuzz.profiles import PROFILES

install_profiles(Path.cwd())
print(json.dumps({
    name: {
        "examples": chosen.max_examples,
        "steps": chosen.stateful_step_count,
        "derandomized": chosen.derandomize,
        "database": repr(chosen.database),
        "deadline": repr(chosen.deadline),
        "explains": "explain" in [phase.name for phase in chosen.phases],
        "shrinks": "shrink" in [phase.name for phase in chosen.phases],
        "suppressed": [check.name for check in chosen.suppress_health_check],
    }
    for name, chosen in ((name, settings.get_profile(name)) for name in PROFILES)
}))
"""

NOTHING_FAILS = """
def test_nothing():
    from hypothesis import settings
    print("profile", settings.get_current_profile_name(), settings.default.max_examples)
"""


def registered(directory: Path, **environment: str) -> dict[str, dict[str, Any]]:
    """The settings of each profile, as registered by a process of its own in ``directory``."""
    finished = run_python("-c", REPORT, cwd=directory, environment=environment)
    assert finished.returncode == 0, finished.stderr
    profiles: dict[str, dict[str, Any]] = json.loads(finished.stdout)
    return profiles


def database_of(directory: Path) -> str:
    path = directory / ".hypothesis" / "examples"
    return f"DirectoryBasedExampleDatabase({path!r})"


@pytest.mark.parametrize("variable", [{}, {"CI": "true"}, {"GITHUB_ACTIONS": "true"}], ids=str)
def test_profiles_are_the_same_on_a_workstation_and_in_a_ci(
    tmp_path: Path, variable: dict[str, str]
) -> None:
    common = {"deadline": "None", "shrinks": True, "suppressed": ["too_slow"]}
    random = {"derandomized": False, "database": database_of(tmp_path), "explains": True, **common}
    fixed = {"derandomized": True, "database": "None", "explains": False, **common}
    assert registered(tmp_path, **variable) == {
        "default": {"examples": 200, "steps": 30, **random},
        "ci": {"examples": 50, "steps": 30, **fixed},
        "nightly": {"examples": 5_000, "steps": 50, **random},
        "torture": {"examples": 50_000, "steps": 200, **random},
    }


def test_ci_makes_hypothesis_choose_a_profile_that_would_leak() -> None:
    """Hypothesis still derives profiles from the CI's; else the guard can be removed."""
    script = "from hypothesis import settings; print(settings(max_examples=9).derandomize)"
    assert run_python("-c", script, environment={"CI": "true"}).stdout == "True\n"


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({"CI": "true"}, "profile default 200"),
        ({"HYPOTHESIS_PROFILE": "nightly", "CI": "true"}, "profile nightly 5000"),
    ],
    ids=str,
)
def test_the_environment_chooses_the_profile_of_a_test_run(
    project: Path, environment: dict[str, str], line: str
) -> None:
    finished = run_pytest(project, environment=environment)
    assert line in finished


def test_hypothesis_keeps_its_own_option_for_the_profile(project: Path) -> None:
    finished = run_pytest(
        project, "--hypothesis-profile=torture", environment={"HYPOTHESIS_PROFILE": "ci"}
    )
    assert "profile torture 50000" in finished


def test_an_unknown_profile_is_refused_in_one_sentence(project: Path) -> None:
    finished = run_alone(project, HYPOTHESIS_PROFILE="weekly")
    assert finished.returncode == int(pytest.ExitCode.USAGE_ERROR)
    assert finished.stderr.strip() == (
        "ERROR: no settings profile is called 'weekly'; "
        "HYPOTHESIS_PROFILE is one of default, ci, nightly, torture"
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one test, with the conftest of this one."""
    conftest = Path(__file__).parents[1] / "conftest.py"
    (tmp_path / "conftest.py").write_text(conftest.read_text("utf-8"), "utf-8")
    (tmp_path / "test_nothing.py").write_text(NOTHING_FAILS, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    return tmp_path


def run_pytest(project: Path, *options: str, environment: dict[str, str]) -> str:
    finished = run_alone(project, "-s", *options, **environment)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def run_alone(project: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with the plugin of Hypothesis, and no other that happens to be installed."""
    plugin = ("-p", "_hypothesis_pytestplugin")
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return run_python("-m", "pytest", *plugin, *options, cwd=project, environment=environment)
