"""Rows with checksums: what a flipped bit makes of a value, and what no row takes."""

from __future__ import annotations

import pytest

from system.durable.errors import RowDamaged
from system.durable.state import Transaction
from system.durable.trigger import TRIGGERS
from system.errors import NotPlainJson
from system.storage.codec import canonical, canonical_row
from tests.unit.durable.durable_bench import Bench


@pytest.mark.parametrize("change", ["fire_at=9e999", "due_at=1.5", "routed=1", "status='EONE'"])
def test_a_changed_value_is_damage(bench: Bench, change: str) -> None:
    trigger_id = bench.emit()
    bench.do(Transaction.execute, f"UPDATE triggers SET {change}")
    with pytest.raises(RowDamaged):
        bench.do(TRIGGERS.read, trigger_id)


def test_a_row_is_read_with_the_types_of_its_fields(bench: Bench) -> None:
    row = bench.row(bench.emit())
    assert (type(row.status).__name__, row.routed) == ("TriggerStatus", False)


@pytest.mark.parametrize("values", [[], ["a", 1, 2.5, None], ["ä\u2028", "\U0001f600"]])
def test_a_row_has_the_canonical_form_of_a_list(values: list[str | int | float | None]) -> None:
    assert canonical_row([*values]) == canonical([*values])


@pytest.mark.parametrize("value", ["\ud800", float("inf")])
def test_no_row_has_a_value_that_is_not_plain(value: str | float) -> None:
    with pytest.raises(NotPlainJson):
        canonical_row([value])
