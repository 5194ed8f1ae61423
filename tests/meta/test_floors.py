"""The floor contracts of pyproject.toml catch what they are there to catch.

That the real tree keeps them is ``make lint``'s business. Here they stand over a small
house of empty rooms, into which one bad import at a time is carried.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.meta.source_tree import ROOT, run_python

LINT_IMPORTS = (
    "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports; "
    "sys.exit(lint_imports(no_cache=True))"
)

HOUSE = (
    "system/ports.py",
    "system/event_log.py",
    "sim/world.py",
    "sim/disk/disk.py",
    "faults/plan.py",
    "faults/mutants/event_log.py",
    "oracles/marks.py",
    "powercut/explore.py",
    "powercut/cli.py",
)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """The rooms, empty, under this project's contracts."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in HOUSE:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        for package in path.parents:
            if package != tmp_path and tmp_path in package.parents:
                (package / "__init__.py").touch()
    return tmp_path


def broken_contracts(house: Path) -> list[str]:
    finished = run_python("-c", LINT_IMPORTS, cwd=house, environment={"PYTHONPATH": str(house)})
    assert "Analyzed" in finished.stdout, finished.stdout + finished.stderr
    return [
        line.removesuffix(" BROKEN")
        for line in finished.stdout.splitlines()
        if line.endswith(" BROKEN")
    ]


def test_the_way_down_is_open(house: Path) -> None:
    for importer, imported in (
        ("powercut/explore.py", "oracles.marks"),
        ("powercut/explore.py", "system.event_log"),
        ("oracles/marks.py", "faults.plan"),
        ("faults/plan.py", "sim.world"),
        ("faults/mutants/event_log.py", "system.event_log"),
        ("sim/world.py", "sim.disk.disk"),
        ("sim/world.py", "system.ports"),
        ("system/event_log.py", "system.ports"),
    ):
        with (house / importer).open("a") as file:
            file.write(f"import {imported}\n")
    assert broken_contracts(house) == []


@pytest.mark.parametrize(
    ("importer", "imported", "broken"),
    [
        ("sim/world.py", "faults.plan", "powercut stands on oracles"),
        ("oracles/marks.py", "powercut.explorer.explore", "powercut stands on oracles"),
        ("faults/plan.py", "oracles.marks", "powercut stands on oracles"),
        ("system/event_log.py", "sim.disk.disk", "system knows nothing"),
        ("system/ports.py", "oracles.marks", "system knows nothing"),
        ("sim/world.py", "system.event_log", "sim knows only the ports"),
        ("sim/disk/disk.py", "system.ports", "the disk knows nothing"),
        ("faults/plan.py", "system.ports", "only the mutants"),
    ],
)
def test_an_import_that_points_up_breaks_its_contract(
    house: Path, importer: str, imported: str, broken: str
) -> None:
    (house / importer).write_text(f"import {imported}\n")
    assert any(name.startswith(broken) for name in broken_contracts(house))


def test_a_circle_breaks_its_contract(house: Path) -> None:
    (house / "sim/world.py").write_text("import sim.disk.disk\n")
    (house / "sim/disk/disk.py").write_text("import sim.world\n")
    assert broken_contracts(house) == ["no circle anywhere"]
