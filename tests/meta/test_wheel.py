"""The wheel: one top-level name, typed, small, and at home beside a project's own packages."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.meta.clean_environment import CleanEnvironment, build_wheel
from tests.meta.source_tree import name_of, python_files
from tests.meta.test_how_to import repair, write_files

LEFT_OUT = ("oracles/durable/", "oracles/recording/", "oracles/runtime/")
"""The oracles of the runtime, which the wheel does not have."""

WORKLOAD = """
import os


def save(process, ack):
    for data in (b"volume=3", b"volume=11"):
        file = process.open("/settings.tmp", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        process.write(file, data)
        process.fsync(file)
        process.close(file)
        process.replace("/settings.tmp", "/settings")
        ack({"/settings": data})
"""

CONSUMER = {
    "sim/__init__.py": "mine = 'sim of the project'\n",
    "system/__init__.py": "mine = 'system of the project'\n",
    "faults/__init__.py": "",
    "oracles/__init__.py": "",
    "settings.py": WORKLOAD,
    "tests/test_settings.py": """
import sim
import system
from settings import save


def test_a_rename_without_a_directory_sync_is_found(powercut_explore):
    assert (sim.mine, system.mine) == ("sim of the project", "system of the project")
    assert not powercut_explore(save).safe
""",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    """The names of the files in the wheel."""
    return zipfile.ZipFile(wheel).namelist()


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    """An environment with the wheel and its core dependencies, and pytest."""
    return CleanEnvironment(tmp_path_factory.mktemp("core"), wheel, tools=("pytest",))


@pytest.fixture(scope="module")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    """An environment with the wheel, its extras, and pytest."""
    directory = tmp_path_factory.mktemp("full")
    return CleanEnvironment(directory, wheel, extras=("fuzz", "sqlite"), tools=("pytest",))


@pytest.fixture
def consumer(tmp_path: Path) -> Path:
    """A project that owns packages with the names of ours."""
    for name, text in CONSUMER.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


def passed(finished: subprocess.CompletedProcess[str]) -> str:
    """Return the output of a run, which must have exited with 0."""
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def test_the_wheel_has_one_top_level_name(names: list[str]) -> None:
    assert {name.split("/")[0] for name in names} == {"powercut", "powercut-0.1.0.dist-info"}


def test_the_wheel_holds_every_module_of_the_engine(names: list[str]) -> None:
    modules = {name_of(path) for path in python_files("powercut")}
    moved = {
        f"powercut/{name_of(path)}"
        for path in python_files("sim", "faults", "oracles")
        if not name_of(path).startswith(LEFT_OUT)
    }
    assert {name for name in names if name.endswith(".py")} == modules | moved
    assert "powercut/py.typed" in names


def test_the_wheel_is_the_same_bytes_when_it_is_built_again(wheel: Path, tmp_path: Path) -> None:
    assert build_wheel(tmp_path).read_bytes() == wheel.read_bytes()


def test_the_command_and_the_plugin_are_declared(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        declared = opened.read("powercut-0.1.0.dist-info/entry_points.txt").decode()
    assert "powercut = powercut.cli.main:main" in declared
    assert "powercut = powercut.pytest_plugin" in declared


def test_the_licence_comes_along(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        text = opened.read("powercut-0.1.0.dist-info/licenses/LICENSE").decode()
    assert "Apache License" in text


def test_the_core_needs_four_packages(core: CleanEnvironment) -> None:
    ours = {"click", "immutables", "rich", "xxhash", "markdown-it-py", "mdurl", "pygments"}
    assert set(core.linked) - ours == {"pytest", "iniconfig", "packaging", "pluggy"}


def test_explore_runs_beside_packages_of_the_same_names(
    core: CleanEnvironment, consumer: Path
) -> None:
    printed = core.run("-m", "powercut", "explore", "settings:save", cwd=consumer)
    assert printed.returncode == 1, printed.stdout + printed.stderr
    assert "FAILED  " in printed.stdout
    assert "rename of /settings.tmp to /settings" in printed.stdout


def test_the_fixture_works_beside_packages_of_the_same_names(
    core: CleanEnvironment, consumer: Path
) -> None:
    assert "1 passed" in passed(core.run("-m", "pytest", "-q", cwd=consumer))


def test_collecting_tests_imports_no_third_party_package_of_ours(
    core: CleanEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    assert 'powercut.pytest_plugin' in sys.modules\n"
        "    ours = ('click', 'rich', 'immutables', 'xxhash', 'powercut.sim', 'powercut.oracles')\n"
        "    assert [name for name in ours if name in sys.modules] == []\n",
        "utf-8",
    )
    assert "1 passed" in passed(core.run("-m", "pytest", "-q", cwd=tmp_path))


def test_a_target_of_the_user_is_fuzzed_beside_packages_of_the_same_names(
    full: CleanEnvironment, consumer: Path
) -> None:
    write_files(consumer, "your-own-system.md")
    ran = full.run("-m", "powercut", "run", "store", "--examples", "11", "-n", "2", cwd=consumer)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "FAILED  LostAck  on posix" in ran.stdout
    file = min((consumer / ".powercut" / "failures").glob("*.json"))
    again = full.run("-m", "powercut", "replay", str(file), cwd=consumer)
    assert "same failure" in again.stdout


def test_a_hypothesis_machine_of_the_user_runs_beside_packages_of_the_same_names(
    full: CleanEnvironment, consumer: Path
) -> None:
    write_files(consumer, "your-own-system.md", "your-own-hypothesis-machine.md")
    repair(consumer)
    machine = consumer / "tests" / "test_store_machine.py"
    few = machine.read_text("utf-8").replace("max_examples=300", "max_examples=20")
    machine.write_text(few, "utf-8")
    options = ("-q", "-p", "no:cacheprovider", "-o", "pythonpath=.")
    ran = full.run("-m", "pytest", *options, "tests/test_store_machine.py", cwd=consumer)
    assert "1 passed" in passed(ran)


def test_sqlite_runs_on_the_simulated_disk(full: CleanEnvironment, tmp_path: Path) -> None:
    script = (
        "import powercut\n"
        "disk = powercut.Disk()\n"
        "connection = powercut.connect(powercut.Process(disk), '/app.db')\n"
        "connection.execute('create table t (x)')\n"
        "print(disk.files().keys())\n"
    )
    assert "/app.db" in passed(full.run("-c", script, cwd=tmp_path))
