"""The tables of README.md and docs/disk.md with models and their values, compared with the code."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from functools import partial

from sim.disk.crash.persistence import MODELS, PersistenceModel, RenameParts, Truncation
from tests.meta.page_tables import quoted, table_rows
from tests.meta.source_tree import ROOT

PAGE = (ROOT / "docs" / "disk.md").read_text("utf-8")

table = partial(table_rows, PAGE)


def test_the_ways_of_a_truncation() -> None:
    assert [quoted(row[0])[0] for row in table("`truncation`")] == [
        each.value for each in Truncation
    ]


def test_the_parts_of_a_rename() -> None:
    assert [quoted(row[0])[0] for row in table("value")] == [each.value for each in RenameParts]


def test_the_fields_of_a_model() -> None:
    names = {each.name for each in fields(PersistenceModel)}
    assert {quoted(row[0])[0] for row in table("field")} <= names
    undefined = [each for each in names if f"`{each}`" not in PAGE and f"`{each}:" not in PAGE]
    assert undefined == ["name"]


def test_the_values_of_the_models() -> None:
    columns = [each.name for each in fields(PersistenceModel)][1:]
    heading = next(line for line in PAGE.splitlines() if line.startswith("| model |"))
    assert quoted(heading) == columns
    rows = {quoted(row[0])[0]: row[1:] for row in table("model")}
    assert rows == {
        name: [_shown(getattr(model, column)) for column in columns]
        for name, model in MODELS.items()
    }


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value.value if isinstance(value, Enum) else value)


def test_the_models() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    rows = table_rows(readme, "model")
    assert {name for row in rows for name in quoted(row[0])} == set(MODELS)
