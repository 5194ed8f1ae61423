"""The pytest plugin, as a project that has powercut installed meets it."""

from __future__ import annotations

import subprocess
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from sim.disk.crash.persistence import MODELS
from tests.meta.source_tree import run_python

HEAVY = ("hypothesis", "apsw", "immutables", "faker", "rich", "click", "sim", "faults", "oracles")

PLAIN = """
def test_short(): pass
"""

ON_THE_DISK = """
import os

def test_a_file_is_written(powercut_disk):
    descriptor = powercut_disk.open("/note", os.O_CREAT | os.O_WRONLY)
    powercut_disk.write(descriptor, b"hello")
    powercut_disk.close(descriptor)
    assert powercut_disk.listdir("/") == ["note"]
    print("model", powercut_disk.disk.model.name)

def test_the_next_test_has_a_disk_of_its_own(powercut_disk):
    assert powercut_disk.listdir("/") == []
"""

EXPLORED = """
import os

def replaced_without_a_sync(disk, ack):
    descriptor = disk.open("/new", os.O_CREAT | os.O_WRONLY)
    disk.write(descriptor, b"whole")
    disk.close(descriptor)
    disk.replace("/new", "/note")
    ack("replaced")

def whole_or_absent(disk, known):
    if "note" in disk.listdir("/"):
        assert disk.stat("/note").st_size == 5

def test_it(powercut_explore):
    print(powercut_explore(replaced_without_a_sync, whole_or_absent))
"""


CARELESS = """
import os

import pytest
from powercut import explore, explore_models

def save(ack):
    with open("tmp", "wb") as file:
        file.write(b"new")
    os.replace("tmp", "f")
    ack({"f": b"new"})
"""

ASSERTED = {
    "fixture": "def test_it(powercut_explore):\n    assert powercut_explore(save).safe\n",
    "function": "def test_it():\n    assert explore(save, model='posix').safe\n",
    "variable": "def test_it():\n    found = explore(save)\n    assert found.safe, found\n",
    "models": (
        "def test_it():\n    verdicts = explore_models(save)\n"
        "    assert all(found.safe for found in verdicts.values())\n"
    ),
}

MARKED = """
@pytest.mark.powercut_models({names})
def test_it(powercut_explore, powercut_model):
    print("under", powercut_model.name)
    assert powercut_explore(save).safe
"""
CASE = """
import unittest

class TestIt(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def explorer(self, powercut_explore):
        self.explore = powercut_explore

    @pytest.mark.powercut_models("ext4")
    def test_it(self):
        assert not self.explore(save).safe
"""
CASE_SENTENCE = (
    " has no effect on a method of unittest.TestCase, because pytest does not repeat it; write a "
    "function, or pass model= to powercut_explore"
)


def run_plugin(
    directory: Path, source: str, *options: str, plugins: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run one test file elsewhere, with our plugin and no other that happens to be installed."""
    (directory / "test_it.py").write_text(source, "utf-8")
    (directory / "pytest.ini").write_text("[pytest]\n", "utf-8")
    chosen = [part for name in ("powercut.pytest_plugin", *plugins) for part in ("-p", name)]
    return run_python(
        "-m",
        "pytest",
        *chosen,
        *options,
        cwd=directory,
        environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )


def test_the_plugin_loads_with_the_package() -> None:
    (entry,) = entry_points(group="pytest11", name="powercut")
    assert entry.value == "powercut.pytest_plugin"


def test_a_run_that_uses_no_fixture_imports_nothing_heavy(tmp_path: Path) -> None:
    source = f"""
        import sys
        def test_what_is_there():
            assert "powercut.pytest_plugin" in sys.modules
            assert [name for name in {HEAVY!r} if name in sys.modules] == []
    """
    finished = run_plugin(tmp_path, "\n".join(line[8:] for line in source.splitlines()))
    assert finished.returncode == 0, finished.stdout


@pytest.mark.parametrize(
    ("settings", "options", "model"),
    [
        ("", (), "posix"),
        ("", ("--powercut-model=btrfs",), "btrfs"),
        ("[tool.powercut]\nmodel = 'xfs'", (), "xfs"),
        ("[tool.powercut]\nmodel = 'xfs'", ("--powercut-model=btrfs",), "btrfs"),
    ],
    ids=str,
)
def test_the_disk_fixture_is_fresh_and_follows_the_model(
    tmp_path: Path, settings: str, options: tuple[str, ...], model: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(settings, "utf-8")
    finished = run_plugin(tmp_path, ON_THE_DISK, "-s", *options)
    assert finished.returncode == 0, finished.stdout
    assert f"model {model}" in finished.stdout


def test_an_unknown_model_is_refused_in_one_sentence(tmp_path: Path) -> None:
    finished = run_plugin(tmp_path, ON_THE_DISK, "--powercut-model=fat32")
    assert finished.returncode == int(pytest.ExitCode.USAGE_ERROR)
    assert "--powercut-model" in finished.stderr
    assert "fat32" in finished.stderr
    assert "ext4-ordered" in finished.stderr
    assert "Traceback" not in finished.stderr + finished.stdout


def test_a_malformed_table_is_refused_in_one_sentence_if_a_fixture_is_used(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.powercut]\nmodle = 'xfs'", "utf-8")
    assert run_plugin(tmp_path, PLAIN).returncode == 0
    finished = run_plugin(tmp_path, ON_THE_DISK)
    assert finished.returncode == int(pytest.ExitCode.USAGE_ERROR)
    assert "[tool.powercut] has an unknown key 'modle'; known are model, " in finished.stderr
    assert "Traceback" not in finished.stderr + finished.stdout


@pytest.mark.parametrize(
    ("options", "verdict"),
    [((), "posix: unsafe"), (("--powercut-model=scc",), "scc: safe")],
    ids=str,
)
def test_the_explore_fixture_follows_the_model(
    tmp_path: Path, options: tuple[str, ...], verdict: str
) -> None:
    finished = run_plugin(tmp_path, EXPLORED, "-s", *options)
    assert finished.returncode == 0, finished.stdout
    assert verdict in finished.stdout


def test_the_options_of_other_plugins_stay_theirs(tmp_path: Path) -> None:
    finished = run_plugin(
        tmp_path,
        PLAIN,
        "-n0",
        "--timeout=9",
        "--hypothesis-seed=1",
        plugins=("xdist", "pytest_timeout", "_hypothesis_pytestplugin"),
    )
    assert "1 passed" in finished.stdout, finished.stderr


def test_a_check_may_skip_its_test(tmp_path: Path) -> None:
    source = """
        import pytest
        def save(process, ack):
            process.mkdir("/d")
        def skips(process, known):
            if process.listdir("/"): pytest.skip("not here")
        def test_it(powercut_explore):
            assert powercut_explore(save, skips).safe
    """
    finished = run_plugin(tmp_path, "\n".join(line[8:] for line in source.splitlines()))
    assert "1 skipped" in finished.stdout


def test_the_end_of_a_test_that_takes_too_long_is_no_finding_of_its_check(tmp_path: Path) -> None:
    source = """
        def save(process, ack):
            process.mkdir("/d")
        def waits(process, known):
            while process.listdir("/"): pass
        def test_it(powercut_explore):
            assert powercut_explore(save, waits).safe
    """
    lines = "\n".join(line[8:] for line in source.splitlines())
    finished = run_plugin(tmp_path, lines, "--timeout=1", plugins=("pytest_timeout",))
    assert finished.returncode == 1
    assert "Failed: Timeout (>1.0s) from pytest-timeout." in finished.stdout
    assert "UnreadableAfterCrash" not in finished.stdout


@pytest.mark.parametrize("source", ASSERTED.values(), ids=ASSERTED)
def test_a_failed_test_has_the_findings_as_a_section_of_its_report(
    tmp_path: Path, source: str
) -> None:
    finished = run_plugin(tmp_path, CARELESS + source)
    assert finished.returncode == 1, finished.stdout + finished.stderr
    section = finished.stdout.partition(" powercut ---")[2]
    assert section.count(" powercut ---") == 0
    assert "posix: unsafe in 1" in section
    assert "  cause     no fsync of /disk between rename at test_it.py:10 and ack at" in section
    assert "  cause     no fsync of /disk/tmp between write at test_it.py:8 and" in section
    assert "repair    with these 2 fsyncs, none of " in section


def test_a_failed_test_has_the_verdicts_if_the_search_for_barriers_fails(tmp_path: Path) -> None:
    broken = "import powercut.explorer.diagnosis\npowercut.explorer.diagnosis._Search = None\n"
    finished = run_plugin(tmp_path, broken + CARELESS + ASSERTED["function"])
    assert finished.returncode == 1, finished.stdout + finished.stderr
    section = finished.stdout.partition(" powercut ---")[2]
    assert "posix: unsafe in 1" in section
    assert "FAILED  LostAck  on posix" in section
    assert "the search for missing fsyncs ended with TypeError(" in section


def test_an_exploration_is_short_in_a_failed_assertion(tmp_path: Path) -> None:
    finished = run_plugin(tmp_path, CARELESS + ASSERTED["function"])
    (line,) = (line for line in finished.stdout.splitlines() if " where False = " in line)
    assert line.startswith("E        +  where False = <Exploration posix: unsafe in ")
    assert line.endswith(" states, exhaustive>.safe")


def test_a_mistake_in_the_use_of_powercut_is_shown_at_the_call_of_the_test(tmp_path: Path) -> None:
    source = (
        "async def save(ack): ...\ndef test_it(powercut_explore):\n    powercut_explore(save)\n"
    )
    finished = run_plugin(tmp_path, source)
    assert finished.returncode == 1, finished.stdout + finished.stderr
    assert "HarnessError: " in finished.stdout
    assert "test_it.py:3: " in finished.stdout
    assert "PersistenceModel(" not in finished.stdout
    assert "explore.py" not in finished.stdout
    assert "explore.py" in run_plugin(tmp_path, source, "--full-trace").stdout


def test_a_test_that_passes_or_fails_by_itself_has_no_section(tmp_path: Path) -> None:
    source = CARELESS + (
        "def test_passes():\n    assert not explore(save).safe\n\n"
        "def test_fails():\n    assert {} == {'a': 1}\n"
    )
    finished = run_plugin(tmp_path, source)
    assert "1 failed, 1 passed" in finished.stdout
    assert " powercut ---" not in finished.stdout


@pytest.mark.parametrize(
    ("names", "options", "models"),
    [
        ("'scc', 'xfs'", (), ["scc", "xfs"]),
        ("", (), ["scc", "ext4-journal", "ext4", "ext4-ordered", "ext4-writeback", "xfs", "btrfs",
                  "posix"]),
        ("'scc', 'xfs'", ("--powercut-model=btrfs",), ["btrfs"]),
    ],
    ids=["some", "all", "option"],
)  # fmt: skip
def test_a_marked_test_runs_under_each_model(
    tmp_path: Path, names: str, options: tuple[str, ...], models: list[str]
) -> None:
    finished = run_plugin(tmp_path, CARELESS + MARKED.format(names=names), "-s", *options)
    found = [line.split()[-1] for line in finished.stdout.splitlines() if "under " in line]
    assert [name for name in found if name in models] == models
    assert f"{len(models)} failed" in finished.stdout
    assert f"FAILED test_it.py::test_it[{models[0]}]" in finished.stdout


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            MARKED.format(names="['ext4', 'xfs']"),
            ": model is ['ext4', 'xfs'] and must be a PersistenceModel or a name: "
            + ", ".join(MODELS),
        ),
        (
            MARKED.format(names="'fat32'"),
            f": unknown persistence model 'fat32'; known are {', '.join(MODELS)}",
        ),
        (
            "@pytest.mark.powercut_models\ndef test_it(): pass\n",
            " needs a fixture: powercut_disk, powercut_explore, powercut_model",
        ),
        (
            MARKED.format(names="names=['ext4']"),
            " takes only names of models: names=['ext4']",
        ),
        (CASE, CASE_SENTENCE),
    ],
    ids=["list", "model", "fixture", "keyword", "unittest"],
)
def test_a_marker_that_means_nothing_fails_its_test_in_one_sentence(
    tmp_path: Path, source: str, sentence: str
) -> None:
    other = "\ndef test_other(powercut_disk):\n    assert powercut_disk.listdir('/') == []\n"
    finished = run_plugin(tmp_path, CARELESS + source + other)
    assert finished.returncode == int(pytest.ExitCode.TESTS_FAILED)
    assert "1 passed, 1 error" in finished.stdout
    assert f"\n@pytest.mark.powercut_models{sentence}\n" in finished.stdout
    assert "During handling" not in finished.stdout, "the sentence is shown twice"
