"""What a person reads when all holes were planted."""

from __future__ import annotations

import io

from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from crash_tests.mutants.search import Row, rows_table


def test_table_of_searches_reads_as_it_did(snapshot: SnapshotAssertion) -> None:
    rows = (
        Row("R4", "a turn consumes what it never showed", True, 3, 6.04, 3, "DeliveredUnseen"),
        Row("R21-reminders", "reminders are volatile", False, 50, 2.96, 0, ""),
    )
    page = io.StringIO()
    Console(file=page, width=100, markup=False, highlight=False).print(rows_table(rows))
    assert "\n".join(line.rstrip() for line in page.getvalue().splitlines()) == snapshot
