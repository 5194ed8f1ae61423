"""The tables of a page in Markdown, for tests that compare them with the code."""

from __future__ import annotations

import re
from collections.abc import Iterator


def table_rows(page: str, first_cell: str) -> Iterator[list[str]]:
    """Yield the rows of the table whose header begins with this cell."""
    rows = page.partition(f"\n| {first_cell} |")[2].splitlines()[2:]
    for row in rows:
        if not row.startswith("|"):
            return
        yield [cell.strip() for cell in row.strip("|").split("|")]


def quoted(text: str) -> list[str]:
    """Return the parts of a text between backticks."""
    return re.findall(r"`([^`]+)`", text)
