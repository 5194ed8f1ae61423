"""The programs of the how-to pages run as they are printed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.meta.source_tree import ROOT, run_python
from tests.sample import in_the_gate

HOW_TO = ROOT / "docs" / "how-to"
FILE = re.compile(r"```\w+\n(# ([\w/.]+\.(?:py|toml))\n.*?)```", re.DOTALL)
FOUND = re.compile(r"^ ([\w-]+) .* found +(\d+) +[\d.]+ +(\d+) +(\w+)", re.MULTILINE)
OUTPUT = re.compile(r"```console\n\$ (.*?)\n(.*?)```", re.DOTALL)
MOST_USER_LINES = 120
FIX = """
        self.io.rename(temporary, f"{self.folder}/snapshot")
        self.sync(self.folder)
"""


def page(name: str) -> str:
    return (HOW_TO / name).read_text("utf-8")


def files_of(name: str) -> Iterator[tuple[str, str]]:
    """The files that a page prints, by their paths."""
    for found in FILE.finditer(page(name)):
        yield found[2], found[1]


def write_files(folder: Path, *pages: str) -> None:
    for name in pages:
        for path, text in files_of(name):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")
    (folder / "crash_tests" / "__init__.py").touch()


def powercut(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_python("-m", "powercut", *arguments, cwd=folder)


def pytest_in(folder: Path) -> subprocess.CompletedProcess[str]:
    plugins = ("-p", "powercut.pytest_plugin", "-p", "no:cacheprovider")
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    options = ("-q", "-o", "pythonpath=.")
    return run_python("-m", "pytest", *plugins, *options, cwd=folder, environment=environment)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The project of the page about a system of one's own, with its bug."""
    write_files(tmp_path, "your-own-system.md")
    return tmp_path


def repair(folder: Path) -> None:
    """Apply the change that the page shows."""
    assert FIX[1:] in page("your-own-system.md")
    program = (folder / "kv.py").read_text("utf-8")
    buggy = FIX.splitlines()[1] + "\n"
    assert program.count(buggy) == 1
    (folder / "kv.py").write_text(program.replace(buggy, FIX[1:]), "utf-8")


def test_a_system_and_its_target_take_few_lines() -> None:
    texts = [text for path, text in files_of("your-own-system.md") if path.endswith(".py")]
    assert len(texts) == 2
    assert sum(len(text.splitlines()) for text in texts) < MOST_USER_LINES


def test_the_bug_of_the_system_is_found_reduced_reported_and_replayed(store: Path) -> None:
    shown = OUTPUT.search(page("your-own-system.md"))
    assert shown is not None
    ran = powercut(store, *shown[1].split()[1:], "-n", "1")
    assert ran.returncode == 1, ran.stderr
    assert shown[2] in ran.stdout
    (file,) = (store / ".powercut" / "failures").glob("d21d8485.json")
    again = powercut(store, "replay", str(file))
    assert again.returncode == 1
    assert again.stdout.splitlines()[-1].startswith("same failure at step 2, byte for byte")
    repair(store)
    assert powercut(store, "replay", str(file)).returncode != 1


def test_the_repaired_system_is_clean_under_crashes_and_faults(store: Path) -> None:
    repair(store)
    ran = powercut(store, "run", "store", "--examples", "60", "-n", "1")
    assert ran.returncode == 0, ran.stdout


def test_the_mutants_of_the_repaired_system_are_found(store: Path) -> None:
    write_files(store, "mutants.md")
    unrepaired = powercut(store, "mutants")
    assert "'rename-is-not-synced': a source patch of kv fits 0 times" in unrepaired.stderr
    repair(store)
    searched = powercut(store, "mutants")
    assert searched.returncode == 0, searched.stdout + searched.stderr
    assert len(FOUND.findall(searched.stdout)) == 2
    assert FOUND.findall(searched.stdout) == FOUND.findall(page("mutants.md"))


@pytest.mark.parametrize(
    "left_out",
    in_the_gate(["Phase.explain, Phase.shrink", "Phase.explain"], lambda out: "," in out),
)
def test_a_hypothesis_machine_finds_the_bug_inside_a_rule(store: Path, left_out: str) -> None:
    write_files(store, "your-own-hypothesis-machine.md")
    machine = store / "tests" / "test_store_machine.py"
    text = machine.read_text("utf-8")
    assert text.count("deadline=None,") == text.count("{Phase.explain}") == 1
    repeatable = text.replace("deadline=None,", "deadline=None, derandomize=True, database=None,")
    machine.write_text(repeatable.replace("{Phase.explain}", f"{{{left_out}}}"), "utf-8")
    found = pytest_in(store)
    assert found.returncode == 1, found.stdout
    assert "put_and_crash(" in found.stdout or "restart_and_crash(" in found.stdout
    repair(store)
    machine.write_text(text.replace("max_examples=300", "max_examples=10"), "utf-8")
    assert pytest_in(store).returncode == 0


def test_a_function_is_crashed_at_every_operation(tmp_path: Path) -> None:
    write_files(tmp_path, "crash-a-function.md")
    ran = pytest_in(tmp_path)
    assert ran.returncode == 0, ran.stdout
    explored = powercut(tmp_path, "explore", "settings")
    assert explored.returncode == 1
    assert "rename of /settings.tmp to /settings" in explored.stdout
    check = ("--check", "crash_tests.settings:readable")
    assert powercut(tmp_path, "explore", "settings", *check).returncode == 0


def test_unmodified_python_is_crashed_anywhere(tmp_path: Path) -> None:
    write_files(tmp_path, "unmodified-python.md")
    ran = pytest_in(tmp_path)
    assert ran.returncode == 0, ran.stdout
    explored = powercut(tmp_path, "explore", "crash_tests.notes:add_two", "--model", "scc")
    assert explored.returncode == 1, explored.stderr
    assert "at a kill" in explored.stdout
    script = """
from collections import Counter
from crash_tests.notes_machine import crash_once
found = Counter()
for seed in range(30):
    try:
        found[str(crash_once(seed))] += 1
    except ValueError:
        found["torn"] += 1
assert set(found) == {"['milk']", "['milk', 'bread']", "torn"}, found
"""
    machine = run_python("-c", script, cwd=tmp_path)
    assert machine.returncode == 0, machine.stderr


def test_every_page_is_listed() -> None:
    index = page("README.md")
    for path in HOW_TO.glob("*.md"):
        assert path.name == "README.md" or f"({path.name})" in index
