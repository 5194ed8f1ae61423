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
    *(f"tests/unit/fuzz/test_{name}.py" for name in ("memory", "sample_texts", "tally")),
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


def run_tests(engine: Path, *arguments: str) -> str:
    """Run pytest in the copy with no other folder of the runtime; return the output."""
    script = (
        "import os, sys; import pytest; "
        "sys.path[:] = [p for p in sys.path if not os.path.exists(p + '/system/ports.py')]; "
        f"sys.exit(pytest.main({['-q', '-x', '-p', 'no:cacheprovider', *arguments]!r}))"
    )
    finished = run_python(
        "-c",
        script,
        cwd=engine,
        environment={"PYTHONPATH": str(engine), "HYPOTHESIS_PROFILE": "ci"},
        timeout_s=280,
    )
    assert finished.returncode == 0, finished.stdout[-4000:] + finished.stderr[-2000:]
    return finished.stdout


def test_the_engine_passes_its_own_tests_without_the_runtime(engine: Path) -> None:
    assert "[100%]" in run_tests(engine, *OWN_TESTS)


def test_the_long_tests_of_the_engine_need_no_runtime(engine: Path) -> None:
    run_tests(engine, "--collect-only", *LONG_TESTS)


def test_the_copy_has_no_runtime(engine: Path) -> None:
    assert not (engine / "system").exists()
    assert (engine / "powercut").exists()
    assert name_of(ROOT / "powercut") == "powercut"
