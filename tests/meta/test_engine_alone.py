"""The engine without an application: a copy of the tree without the runtime and its tests.

``system``, ``crash_tests`` and the oracles of the runtime are removed from the copy, and the
engine's own tests run there: those of the packages that import modules by name, or in other
processes. They take most of a minute, so the others are only collected in the copy, which
imports everything that they use; they run in the whole tree.
"""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.meta.source_tree import ROOT, name_of, run_python, text_files

APPLICATION = (
    "system/",
    "crash_tests/",
    "oracles/durable/",
    "oracles/recording/",
    "oracles/runtime/",
    "tests/crash_tests/",
    "tests/unit/crash_tests/",
    "tests/unit/oracles/durable/",
    "tests/unit/oracles/recording/",
    "tests/unit/oracles/runtime/",
    "tests/unit/durable/",
    "tests/unit/providers/",
    "tests/unit/recording/",
    "tests/unit/system/",
)
REPORTS = tuple(
    f"tests/unit/cli/test_{name}.py" for name in ("findings", "output", "replay_failure", "run")
)
OTHERS = ("tests/unit/cli/test_calibrate.py", *REPORTS)
OWN_TESTS = {
    "reports": REPORTS,
    "cli": ("tests/unit/cli", *[f"--ignore={path}" for path in OTHERS]),
    "fuzz": ("tests/snapshots", "tests/unit/fuzz", "tests/unit/world"),
}
"""What runs in the copy, each in a process of its own that takes as long as the others.

Each takes half a minute on a fast machine, and minutes on one that is slow or shared.
"""
ALL_TESTS = ("tests/conformance", "tests/controls", "tests/litmus", "tests/unit")
"""Those of the engine, when the application is removed."""
HIDING = """\
import os, sys
sys.path[:] = [path for path in sys.path if not os.path.exists(path + "/system/ports.py")]
"""
"""Removes other folders of the runtime, such as an editable installation."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copy; no interpreter that is started in it finds a runtime elsewhere."""
    copy = tmp_path_factory.mktemp("engine")
    for path in text_files():
        name = name_of(path)
        if not name.startswith(APPLICATION):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy / name)
            copy_bytecode(path, copy / name)
    (copy / "sitecustomize.py").write_text(HIDING, "ascii")
    return copy


def copy_bytecode(path: Path, target: Path) -> None:
    """Copy what was compiled from a module before; it fits, because the copy has the same time."""
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        (target.parent / "__pycache__").mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            shutil.copy2(compiled, target.parent / "__pycache__" / compiled.name)


def run_in(engine: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(engine), "HYPOTHESIS_PROFILE": "ci"}
    return run_python(*arguments, cwd=engine, environment=environment, timeout_s=580)


def run_tests(engine: Path, *arguments: str) -> str:
    """Run pytest in the copy; return the output."""
    finished = run_in(engine, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments)
    assert finished.returncode == 0, finished.stdout[-4000:] + finished.stderr[-2000:]
    return finished.stdout


@pytest.mark.timeout(600)
@pytest.mark.parametrize("paths", OWN_TESTS.values(), ids=OWN_TESTS)
def test_the_engine_passes_its_own_tests_without_the_runtime(
    engine: Path, paths: tuple[str, ...]
) -> None:
    assert "[100%]" in run_tests(engine, *paths)


def test_no_test_of_the_engine_imports_the_runtime(engine: Path) -> None:
    run_tests(engine, "--collect-only", *ALL_TESTS)


def test_the_copy_has_no_runtime(engine: Path) -> None:
    assert not (engine / "system").exists()
    assert (engine / "powercut").exists()
    assert name_of(ROOT / "powercut") == "powercut"
    for package in ("system", "crash_tests", "oracles.runtime"):
        imported = run_in(engine, "-c", f"import {package}")
        assert f"No module named '{package}'" in imported.stderr
