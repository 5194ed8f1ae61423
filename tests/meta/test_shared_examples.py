"""All processes of a test run keep their failing examples in one directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis.internal.reflection import function_digest

from tests.crash_tests.rules import leaf_of
from tests.meta.source_tree import ROOT, run_python

CONFTEST = ROOT / "tests" / "conftest.py"

FAILING = """
import os

from hypothesis import Phase, given, settings
from hypothesis.strategies import integers

phases = [Phase.reuse] if "ONLY_KEPT" in os.environ else [Phase.reuse, Phase.generate]

@settings(phases=phases)
@given(number=integers())
def test_small(number):
    assert number < 1000

@settings(phases=phases)
@given(number=integers())
def test_large(number):
    assert number > -1000
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of two tests that fail, with the conftest of this one."""
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text("utf-8"), "utf-8")
    (tmp_path / "test_failing.py").write_text(FAILING, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    return tmp_path


def run_pytest(project: Path, *options: str, **environment: str) -> str:
    """Run the two tests without other plugins; return the last line of the output."""
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    plugins = ("-p", "xdist", "-p", "_hypothesis_pytestplugin")
    finished = run_python("-m", "pytest", *plugins, *options, cwd=project, environment=environment)
    return finished.stdout.splitlines()[-1]


def test_what_one_worker_found_another_process_tries_first(project: Path) -> None:
    # With nothing kept, Hypothesis has nothing to try.
    assert "2 skipped" in run_pytest(project, "-n0", ONLY_KEPT="yes")
    assert "2 failed" in run_pytest(project, "-n2")
    assert len(list((project / ".hypothesis" / "examples").iterdir())) > 1
    assert "2 failed" in run_pytest(project, "-n0", ONLY_KEPT="yes")


def test_leaves_without_a_source_are_distinguished_by_their_names() -> None:
    leaves = [leaf_of("runtime", "posix"), leaf_of("runtime", "xfs"), leaf_of("lifecycle", "xfs")]
    assert len({function_digest(leaf) for leaf in leaves}) == len(leaves)
    assert function_digest(leaf_of("runtime", "posix")) == function_digest(leaves[0])
