"""The files of this repository that the rules apply to."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "sim", "faults", "oracles", "system", "powercut", "crash_tests", "benchmarks", "tests",
)  # fmt: skip


def python_files(*packages: str) -> Iterator[Path]:
    """Every Python file of these packages, or of all, in a fixed order."""
    for package in packages or PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def text_files() -> Iterator[Path]:
    """Every file of the repository: committed ones, and new ones that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = (ROOT / name for name in sorted(listed.stdout.split("\0")) if name)
    yield from (path for path in paths if path.is_file())


def name_of(path: Path) -> str:
    """The path relative to the repository."""
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    """The syntax tree of one file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=name_of(path))


def statements_of(block: ast.AST) -> Iterator[ast.stmt]:
    """The statements of a module or of a statement, at any depth; expressions are not searched."""
    for node in ast.iter_child_nodes(block):
        if isinstance(node, ast.stmt):
            yield node
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield from statements_of(node)


def run_python(
    *arguments: str,
    cwd: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run this interpreter with the repository importable and without the variables of a CI.

    ``environment`` is laid over a copy of ours from which the profile, the hash seed and the
    variables that Hypothesis takes for a CI are gone, and coverage's own are kept.
    """
    variables = {
        name: value
        for name, value in os.environ.items()
        if name not in {"CI", "GITHUB_ACTIONS", "HYPOTHESIS_PROFILE", "PYTHONHASHSEED"}
        and not name.startswith("PYTEST_")
    }
    variables["PYTHONPATH"] = str(ROOT)
    variables.update(environment or {})
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=variables,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
