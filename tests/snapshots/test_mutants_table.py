"""The table of ``powercut mutants``."""

from __future__ import annotations

import io

from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from powercut.fuzz.mutant_search import MutantSearch
from powercut.report.mutants import mutants_table


def test_mutants_table_is_unchanged(snapshot: SnapshotAssertion) -> None:
    lost = ("LostAck",)
    searches = (
        MutantSearch("no-fsync", "the file is not synced", lost, 3, 6.04, "LostAck", 3),
        MutantSearch("torn-tail", "a partial line stays in the log", lost, 50, 2.96),
        MutantSearch("no-lock", "two processes open the root", lost, 7, 0.51, "KeyError", 2),
    )
    page = io.StringIO()
    Console(file=page, width=100, markup=False, highlight=False).print(mutants_table(searches))
    assert "\n".join(line.rstrip() for line in page.getvalue().splitlines()) == snapshot
