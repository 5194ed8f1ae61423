"""The tutorial, from top to bottom: its files are written, its commands print what it shows."""

from __future__ import annotations

import re
from pathlib import Path

from tests.meta.source_tree import ROOT, run_python

PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
BLOCK = re.compile(r"```(python|console)\n(.*?)```", re.DOTALL)
PLUGIN = ("-p", "powercut.pytest_plugin", "-p", "no:cacheprovider")


def write(folder: Path, text: str) -> None:
    """Write a block of the page to the file that its first line names."""
    name = text.partition("\n")[0].removeprefix("# ")
    (folder / name).write_text(text, "utf-8")


def output_of(folder: Path, command: str) -> str:
    ran = run_python("-m", *command.removeprefix("$ ").split(), cwd=folder)
    return "\n".join(line.rstrip() for line in ran.stdout.splitlines()).strip()


def test_the_tutorial_happens_as_it_is_written(tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE)
    assert [kind for kind, _ in blocks].count("console") == 4
    for kind, text in blocks:
        if kind == "python":
            write(tmp_path, text)
        else:
            command, _, shown = text.partition("\n")
            assert output_of(tmp_path, command) == shown.strip()
    tested = run_python(
        *("-m", "pytest", "-q", *PLUGIN, "test_counter.py"),
        cwd=tmp_path,
        environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert "8 passed" in tested.stdout, tested.stdout
