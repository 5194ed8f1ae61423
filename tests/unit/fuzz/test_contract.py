"""The table of fault families in docs/how-to/your-own-system.md, compared with the code."""

from __future__ import annotations

from powercut.fuzz.fault_families import LEFT_OUT, FaultFamily
from tests.meta.page_tables import quoted, table_rows
from tests.meta.source_tree import ROOT

PAGE = (ROOT / "docs" / "how-to" / "your-own-system.md").read_text("utf-8")


def test_every_family_is_listed_with_whether_a_target_is_given_it_by_default() -> None:
    given = {name: row[2] for row in table_rows(PAGE, "family") for name in quoted(row[0])}
    assert list(given) == [family.name for family in FaultFamily]
    left_out = {name for name, default in given.items() if default.startswith("no")}
    assert left_out == {family.name for family in LEFT_OUT}
