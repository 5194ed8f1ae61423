"""The table that closes ``powercut mutants``."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.table import Table

from powercut.fuzz.mutant_search import MutantSearch


def mutants_table(searches: Iterable[MutantSearch]) -> Table:
    """Return a table of the searches: found or not, after how many runs, in how many steps."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("id", no_wrap=True)
    table.add_column("planted bug")
    table.add_column("")
    for heading in ("examples", "seconds", "steps"):
        table.add_column(heading, justify="right")
    table.add_column("property")
    for search in searches:
        table.add_row(
            search.tag,
            search.title,
            "found" if search.found else "MISSED",
            str(search.examples),
            f"{search.seconds:.1f}",
            str(search.steps) if search.broken else "",
            search.broken if search.found or not search.broken else f"{search.broken}, unrelated",
        )
    return table
