"""The pytest plugin in an unrelated project: collecting with it, beside collecting without it.

Both runs are whole processes in an environment of their own, with the built wheel installed in
one of the two.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.row import Row, seconds_of
from tests.meta.clean_environment import CleanEnvironment, build_wheel

_PAIRS: Final = 15
_MILLISECONDS: Final = 1000
_BUDGET_MS: Final = 30.0


def rows() -> Iterator[Row]:
    """Yield the row: the added milliseconds beside the budget of 30."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        project = folder / "project"
        project.mkdir()
        (project / "test_it.py").write_text("def test_it(): pass\n", "utf-8")
        plain = CleanEnvironment(folder / "plain", None, tools=("pytest",))
        wheel = build_wheel(folder)
        installed = CleanEnvironment(folder / "installed", wheel, tools=("pytest",))
        pairs = [
            (_collect(installed, project), _collect(plain, project)) for _ in range(_PAIRS + 1)
        ]
    added = median(ours - beside for ours, beside in pairs[1:]) * _MILLISECONDS
    yield Row(
        "pytest --collect-only with the wheel, added", max(added, 0.0), _BUDGET_MS, "ms", "<=", 1.0,
        f"median of {_PAIRS} alternating pairs; beside the budget",
    )  # fmt: skip


def _collect(environment: CleanEnvironment, project: Path) -> float:
    """Collect the project's test once; return the seconds."""

    def collect() -> None:
        finished = environment.run("-m", "pytest", "--collect-only", cwd=project)
        loaded = "plugins: powercut" in finished.stdout
        assert finished.returncode == 0, finished.stdout + finished.stderr
        assert loaded == ("click" in environment.linked), finished.stdout

    return seconds_of(collect)
