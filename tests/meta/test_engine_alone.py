"""The engine without an application: a copy of the tree without the runtime and its tests.

``system``, ``crash_tests`` and ``oracles.runtime`` are removed from the copy, and the engine's own
tests run there.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.meta.source_tree import ROOT, name_of, run_python, text_files

APPLICATION = (
    "system/",
    "crash_tests/",
    "oracles/runtime/",
    "tests/crash_tests/",
    "tests/unit/crash_tests/",
    "tests/unit/oracles/runtime/",
    "tests/unit/providers/",
    "tests/unit/system/",
)
OWN_TESTS = (
    "tests/unit/choices",
    "tests/unit/disk",
    "tests/unit/explorer",
    "tests/unit/faults",
    "tests/unit/fuzz",
    "tests/unit/loop",
    "tests/unit/sqlite",
    "tests/unit/world",
)
LONG_TESTS = ("tests/conformance", "tests/controls", "tests/litmus")
"""Collected here, which imports everything that they use; they run in the whole tree."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copy."""
    copy = tmp_path_factory.mktemp("engine")
    for path in text_files():
        name = name_of(path)
        if not name.startswith(APPLICATION):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy / name)
    return copy


def test_the_engine_passes_its_own_tests_without_the_runtime(engine: Path) -> None:
    finished = run_python(
        "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *OWN_TESTS,
        cwd=engine,
        environment={"PYTHONPATH": str(engine), "HYPOTHESIS_PROFILE": "ci"},
        timeout_s=280,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout[-4000:] + finished.stderr[-2000:]
    assert " passed" in finished.stdout


def test_the_long_tests_of_the_engine_need_no_runtime(engine: Path) -> None:
    finished = run_python(
        "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *LONG_TESTS,
        cwd=engine,
        environment={"PYTHONPATH": str(engine)},
    )  # fmt: skip
    assert finished.returncode == 0, finished.stdout[-4000:] + finished.stderr[-2000:]


def test_the_copy_has_no_runtime(engine: Path) -> None:
    assert not (engine / "system").exists()
    assert (engine / "powercut").exists()
    assert name_of(ROOT / "powercut") == "powercut"
