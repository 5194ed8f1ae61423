"""The import contracts of ``pyproject.toml`` break on every import that they forbid.

``make lint`` checks the real tree. Here the contracts are applied to a small tree of empty
modules, to which one forbidden import is added at a time.
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

MODULES = (
    "system/ports.py",
    "system/runtime.py",
    "system/agents/turns.py",
    "system/commands/records.py",
    "system/demo/jobs.py",
    "system/durable/state.py",
    "system/host.py",
    "system/providers/bare.py",
    "system/recording/records/record.py",
    "system/recovery/recovery.py",
    "system/root.py",
    "system/sessions/session.py",
    "system/workers.py",
    "sim/world.py",
    "sim/disk/disk.py",
    "sim/disk/os_error.py",
    "sim/disk/calls/process.py",
    "sim/disk/cache/inode.py",
    "sim/disk/crash/persistence.py",
    "faults/fault_plan.py",
    "oracles/marks.py",
    "oracles/durable/shadow.py",
    "oracles/recording/shadow.py",
    "oracles/runtime/shadow.py",
    "powercut/registry.py",
    "crash_tests/targets/runtime.py",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Empty modules under this project's contracts."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in MODULES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        for package in path.parents:
            if package != tmp_path and tmp_path in package.parents:
                (package / "__init__.py").touch()
    return tmp_path


def broken_contracts(tree: Path) -> list[str]:
    """Return the names of the contracts that the tree breaks."""
    finished = run_python("-c", LINT_IMPORTS, cwd=tree, environment={"PYTHONPATH": str(tree)})
    assert "Analyzed" in finished.stdout, finished.stdout + finished.stderr
    return [
        line.removesuffix(" BROKEN")
        for line in finished.stdout.splitlines()
        if line.endswith(" BROKEN")
    ]


def test_the_allowed_imports_break_no_contract(tree: Path) -> None:
    for importer, imported in (
        ("powercut/registry.py", "oracles.marks"),
        ("powercut/registry.py", "faults.fault_plan"),
        ("powercut/registry.py", "sim.world"),
        ("faults/fault_plan.py", "sim.world"),
        ("sim/world.py", "sim.disk.calls.process"),
        ("sim/disk/calls/process.py", "sim.disk.disk"),
        ("sim/disk/disk.py", "sim.disk.crash.persistence"),
        ("sim/disk/crash/persistence.py", "sim.disk.cache.inode"),
        ("system/runtime.py", "system.ports"),
        ("system/durable/state.py", "system.ports"),
        ("system/runtime.py", "system.durable.state"),
        ("crash_tests/targets/runtime.py", "system.runtime"),
        ("crash_tests/targets/runtime.py", "oracles.runtime.shadow"),
        ("crash_tests/targets/runtime.py", "powercut.registry"),
        ("crash_tests/targets/runtime.py", "sim.world"),
    ):
        with (tree / importer).open("a") as file:
            file.write(f"import {imported}\n")
    assert broken_contracts(tree) == []


@pytest.mark.parametrize(
    ("importer", "imported", "broken"),
    [
        ("powercut/registry.py", "system.ports", "powercut imports no application"),
        ("powercut/registry.py", "crash_tests.targets.runtime", "powercut imports no application"),
        ("powercut/registry.py", "oracles.runtime.shadow", "powercut imports no application"),
        ("faults/fault_plan.py", "oracles.marks", "faults imports sim only"),
        ("faults/fault_plan.py", "system.ports", "faults imports sim only"),
        (
            "system/durable/state.py",
            "system.agents.turns",
            "durable execution imports ports, storage and errors of the runtime only",
        ),
        ("sim/world.py", "faults.fault_plan", "sim imports none of ours"),
        ("sim/world.py", "system.ports", "sim imports none of ours"),
        ("oracles/marks.py", "sim.world", "oracles import none of ours"),
        ("oracles/runtime/shadow.py", "system.ports", "oracles import none of ours"),
        ("system/runtime.py", "sim.world", "system imports none of ours"),
        ("system/runtime.py", "crash_tests.targets.runtime", "system imports none of ours"),
        ("sim/disk/cache/inode.py", "sim.disk.disk", "the disk in three layers"),
        ("sim/disk/cache/inode.py", "sim.disk.crash.persistence", "the disk in three layers"),
        ("sim/disk/disk.py", "sim.disk.calls.process", "the disk in three layers"),
    ],
)
def test_a_forbidden_import_breaks_its_contract(
    tree: Path, importer: str, imported: str, broken: str
) -> None:
    (tree / importer).write_text(f"import {imported}\n")
    assert any(name.startswith(broken) for name in broken_contracts(tree))


def test_a_cycle_breaks_its_contract(tree: Path) -> None:
    (tree / "sim/world.py").write_text("import sim.disk.disk\n")
    (tree / "sim/disk/disk.py").write_text("import sim.world\n")
    assert broken_contracts(tree) == ["no cycle anywhere"]
