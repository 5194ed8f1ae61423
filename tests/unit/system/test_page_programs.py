"""The programs of docs/runtime.md, durable.md and recording.md do their work once, in two runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.meta.source_tree import ROOT, run_python


@pytest.mark.parametrize(
    ("page", "name", "first", "second"),
    [
        ("runtime.md", "ada.py", "HELLO\n", ""),
        (
            "durable.md",
            "letters.py",
            "sent to ada@example.org\nDONE None\nFAILED that is no address\n",
            "DONE None\nFAILED that is no address\n",
        ),
        (
            "recording.md",
            "sums.py",
            "computed 5\nrecorded 5\ncomputed 9\n",
            "recorded 5\nrecorded 5\nrecorded 9\n",
        ),
    ],
)
def test_the_program_of_a_page_does_its_work_once(
    tmp_path: Path, page: str, name: str, first: str, second: str
) -> None:
    text = (ROOT / "docs" / page).read_text("utf-8")
    program = text.partition(f"```python\n# {name}\n")[2].partition("```")[0]
    (tmp_path / name).write_text(program, "utf-8")
    runs = [run_python(name, cwd=tmp_path) for _ in range(2)]
    assert [(ran.stdout, ran.stderr) for ran in runs] == [(first, ""), (second, "")]
