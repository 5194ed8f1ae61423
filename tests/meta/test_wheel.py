"""The wheel holds the five packages, typed, and nothing of the workshop."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.meta.source_tree import ROOT, name_of, python_files, run_python

PACKAGES = ("sim", "faults", "oracles", "system", "powercut")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built offline by the installed backend."""
    directory = tmp_path_factory.mktemp("wheel")
    script = f"from hatchling.build import build_wheel; build_wheel({str(directory)!r})"
    finished = run_python("-c", script, cwd=ROOT)
    assert finished.returncode == 0, finished.stderr
    (path,) = Path(directory).glob("*.whl")
    assert path.name == "powercut-0.1.0-py3-none-any.whl"
    return zipfile.ZipFile(path)


def test_every_module_of_ours_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    modules = {name_of(path) for path in python_files(*PACKAGES)}
    assert modules <= set(wheel.namelist())


def test_nothing_else_is(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert tops == {*PACKAGES, "powercut-0.1.0.dist-info"}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_says_that_it_is_typed(wheel: zipfile.ZipFile, package: str) -> None:
    assert f"{package}/py.typed" in wheel.namelist()


def test_the_command_and_the_plugin_are_declared(wheel: zipfile.ZipFile) -> None:
    declared = wheel.read("powercut-0.1.0.dist-info/entry_points.txt").decode()
    assert "powercut = powercut.cli.main:main" in declared
    assert "powercut = powercut.pytest_plugin" in declared


def test_the_licence_comes_along(wheel: zipfile.ZipFile) -> None:
    text = wheel.read("powercut-0.1.0.dist-info/licenses/LICENSE").decode()
    assert "Apache License" in text
