"""The program of docs/runtime.md does its work once, however often it is started."""

from __future__ import annotations

from pathlib import Path

from tests.meta.source_tree import ROOT, run_python

PAGE = (ROOT / "docs" / "runtime.md").read_text("utf-8")


def test_the_program_of_the_page_prints_its_answer_once(tmp_path: Path) -> None:
    program = PAGE.partition("\n## A program\n")[2].partition("```python\n")[2].partition("```")[0]
    (tmp_path / "ada.py").write_text(program, "utf-8")
    runs = [run_python("ada.py", cwd=tmp_path) for _ in range(2)]
    assert [(ran.stdout, ran.stderr) for ran in runs] == [("HELLO\n", ""), ("", "")]
