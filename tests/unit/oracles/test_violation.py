"""Violations: their text, and one documented class for each property."""

from __future__ import annotations

import pytest

from oracles import violation
from oracles.violation import LostAck, Violation, shown
from tests.meta.page_tables import quoted, table_rows
from tests.meta.source_tree import ROOT


def test_a_violation_prints_its_statement_and_its_evidence() -> None:
    lost = LostAck("entry 3 is gone", expected=[1, 3], actual=[1])
    assert str(lost) == "entry 3 is gone (expected=[1, 3] actual=[1])"


def test_long_evidence_is_cut_in_the_middle() -> None:
    text = str(LostAck("gone", expected="x" * 1_000))
    assert "842 more" in text
    assert len(text) < 250


@pytest.mark.parametrize("kind", Violation.__subclasses__(), ids=lambda kind: kind.__name__)
def test_every_property_is_a_class_of_its_own_with_its_meaning_written_down(
    kind: type[Violation],
) -> None:
    assert kind.__doc__
    assert kind("it broke").property_name == kind.__name__


def test_a_byte_that_is_not_utf_8_is_shown_as_a_byte() -> None:
    assert shown(b"line \xff".decode("utf-8", "surrogateescape")) == r"'line \xff'"
    assert shown(r"line \udcff") == r"'line \\udcff'"


def test_the_glossary_lists_the_violations() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    shown = {quoted(name)[0]: meaning for name, meaning in table_rows(page, "class")}
    classes = [each for each in vars(violation).values() if isinstance(each, type)]
    assert shown == {
        each.__name__: str(each.__doc__).partition("\n")[0]
        for each in classes
        if issubclass(each, Violation) and each is not Violation
    }
