"""The tables of costs in docs/runtime.md."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tests.meta.source_tree import ROOT

SECTION: Final = "## What one operation costs"
ROW: Final = re.compile(
    r"\| (?P<operation>[^|]+?) \| (?P<framed>\d+) \| (?P<pending>\d+) \| (?P<recording>\d+) \|.*"
)


class Costs(NamedTuple):
    """The barriers of an operation by framing, and those that its recording adds."""

    framed: int
    pending: int
    recording: int


def table() -> dict[str, Costs]:
    """The rows of all tables of the page, by operation."""
    page = (ROOT / "docs" / "runtime.md").read_text(encoding="utf-8")
    section = page.partition(SECTION)[2].partition("\n## ")[0]
    rows = (ROW.fullmatch(line) for line in section.splitlines())
    return {
        row["operation"]: Costs(int(row["framed"]), int(row["pending"]), int(row["recording"]))
        for row in rows
        if row
    }
