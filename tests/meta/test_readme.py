"""The example of the README prints the report that the README shows."""

from __future__ import annotations

import re
from pathlib import Path

from tests.meta.source_tree import ROOT, run_python

README = (ROOT / "README.md").read_text("utf-8")


def block(start: str) -> str:
    """Return the fenced block of the README that begins with ``start``."""
    found = re.search(rf"```\w*\n({re.escape(start)}.*?)```", README, re.DOTALL)
    assert found is not None, start
    return found[1]


def test_the_example_prints_the_report_of_the_readme(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(block("# settings.py"), "utf-8")
    ran = run_python("-m", "powercut", "explore", "settings:save", cwd=tmp_path)
    assert ran.returncode == 1, ran.stderr
    printed = "\n".join(line.rstrip() for line in ran.stdout.splitlines())
    assert printed.strip() == block("settings:save\n").strip()


def test_the_repair_of_the_readme_makes_the_example_safe(tmp_path: Path) -> None:
    program = block("# settings.py").replace(
        "        ack(",
        '        directory = os.open(".", os.O_RDONLY)\n'
        "        os.fsync(directory)\n"
        "        os.close(directory)\n"
        "        ack(",
    )
    (tmp_path / "settings.py").write_text(program, "utf-8")
    ran = run_python("-m", "powercut", "explore", "settings:save", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("exhaustive") == 8
