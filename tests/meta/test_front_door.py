"""Every documented name is imported from ``powercut``, as a user imports it."""

from __future__ import annotations

import pkgutil
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import powercut
from tests.meta.source_tree import ROOT, run_python

CONSUMER = ROOT / "tests" / "meta" / "consumer.py"
EXPLORED = "print(powercut.explore(work, lambda process, known: None, 'scc'))"
WORK = "def work(process, ack): process.mkdir('/d'), ack('made')"
OURS = "powercut|sim|faults|oracles"
MODULE = rf"(?:{OURS})\b[\w.]*"
IMPORT = re.compile(rf"^(?:from ({MODULE}) import (.+)|import ({MODULE}))$", re.MULTILINE)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project outside of the repository that uses every public name."""
    shutil.copy(CONSUMER, tmp_path / "consumer.py")
    return tmp_path


def test_every_name_can_be_used_twice_in_a_fresh_process(project: Path) -> None:
    finished = run_python("consumer.py", cwd=project)
    assert finished.stdout == "every name was used twice\n", finished.stderr


def test_the_types_of_every_name_reach_a_project_of_a_user(project: Path) -> None:
    finished = run_python("-m", "mypy", "--strict", "consumer.py", cwd=project)
    assert finished.returncode == 0, finished.stdout


@pytest.mark.parametrize(
    "imported_before",
    ["", "powercut.explorer.explore", "powercut.cli.explore", "powercut.cli.main"],
    ids=str,
)
def test_explore_is_the_function_whatever_was_imported_before(imported_before: str) -> None:
    first = f"import {imported_before or 'powercut'}"
    script = (
        f"{first}\n{WORK}\nimport powercut\n{EXPLORED}\nfrom powercut import explore\n{EXPLORED}"
    )
    finished = run_python("-c", script)
    assert finished.stdout == "scc: safe of 7 states, exhaustive\n" * 2, finished.stderr


def test_no_module_has_a_public_name() -> None:
    modules = {module.name for module in pkgutil.iter_modules(powercut.__path__)}
    assert modules & set(powercut.__all__) == set()


def test_the_names_are_listed() -> None:
    assert dir(powercut) == sorted(powercut.__all__)


def test_an_unknown_name_is_an_ordinary_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'powercut' has no attribute 'exlpore'"):
        _ = powercut.exlpore


def test_importing_powercut_imports_nothing_else() -> None:
    script = "import sys, powercut; print(sorted(n for n in sys.modules if n.startswith('sim')))"
    assert run_python("-c", script).stdout == "[]\n"


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("connect", "apsw", "sqlite"), ("HypothesisChoices", "hypothesis", "fuzz")],
)
def test_a_name_of_a_missing_extra_says_what_to_install(
    name: str, package: str, extra: str
) -> None:
    script = f"import sys; sys.modules[{package!r}] = None; from powercut import {name}"
    finished = run_python("-c", script)
    assert finished.stderr.splitlines()[-1] == (
        f"ModuleNotFoundError: powercut.{name} needs {package}, which is not installed: "
        f"pip install 'powercut[{extra}]'"
    )


def test_the_package_is_a_program() -> None:
    finished = run_python("-m", "powercut", "--version")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("powercut ")


def test_the_documentation_imports_public_names_of_powercut_alone() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = [line.groups("") for page in pages for line in IMPORT.finditer(page.read_text("utf-8"))]
    assert {module or imported for module, _, imported in found} == {"powercut"}
    names = {name for _, names, _ in found for name in names.split(", ") if name}
    assert names < set(powercut.__all__)


def test_the_example_of_journals_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "disk.md").read_text("utf-8").partition("\n## Journals\n")[2]
    example = text.partition("```python\n")[2].partition("```")[0]
    disk = powercut.Disk()
    powercut.Process(disk).mkdir("/d")
    names: dict[str, Any] = {"disk": disk}
    exec(compile(example, "docs/disk.md", "exec"), names)
    assert names["other"].model.name == "btrfs"
    assert names["other"].journal.operations == disk.journal.operations
