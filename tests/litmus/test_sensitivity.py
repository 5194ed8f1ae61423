"""The litmus tests are sensitive: after a change of any field of a model, one of them fails.

Fields that another one implies are left out. A sequential model keeps everything in order,
and a model of whole calls must be sequential; a model that syncs all metadata syncs names;
where data always precedes the size, no stale bytes are visible; a truncation counts as
metadata only where metadata have an order.
"""

from __future__ import annotations

from dataclasses import fields, replace
from enum import Enum

import pytest

from sim.disk.cache.inode import BLOCK_BYTES, SECTOR_BYTES
from sim.disk.crash.persistence import (
    EXT4_ORDERED,
    MODELS,
    DataBeforeSize,
    DirectoryOrder,
    PersistenceModel,
    StaleBytes,
    TruncateOrder,
)
from tests.litmus.allowed import LITMUS
from tests.litmus.body import outcomes

OF_SEQUENTIAL_MODELS = ("torn_units", "sync_metadata", "atomic_rename")


def _others(value: object) -> list[object]:
    match value:
        case bool():
            return [not value]
        case Enum():
            return [other for other in type(value) if other is not value]
        case _:
            return [size for size in (SECTOR_BYTES, BLOCK_BYTES) if size != value]


def _implied(model: PersistenceModel, name: str, value: object) -> bool:
    if model.sequential:
        by_unit = name == ("sequential" if model.unit_bytes else "unit_bytes")
        return not (name in OF_SEQUENTIAL_MODELS or by_unit)
    return (
        (name == "sync_names" and model.sync_metadata)
        or (name == "stale_bytes" and model.data_before_size is DataBeforeSize.ALWAYS)
        or (
            (name, value) == ("stale_bytes", StaleBytes.NEW_BLOCKS)
            and model.data_before_size is DataBeforeSize.NEW_BLOCKS
        )
        or (
            (name, value) == ("truncate_order", TruncateOrder.METADATA)
            and model.directory_order is not DirectoryOrder.ALL
        )
    )


CHANGES = [
    (model, field.name, value)
    for model in MODELS.values()
    for field in fields(model)
    if field.name != "name"
    for value in _others(getattr(model, field.name))
    if not _implied(model, field.name, value)
]


@pytest.mark.parametrize(
    ("model", "name", "value"),
    CHANGES,
    ids=[f"{model.name} {name} {value}" for model, name, value in CHANGES],
)
def test_a_changed_field_fails_a_litmus_test(
    model: PersistenceModel, name: str, value: object
) -> None:
    changed = replace(model, **{name: value})  # type: ignore[arg-type] # any field by its name
    assert any(
        outcomes(changed, litmus.setup, litmus.body) != litmus.allowed(model.name)
        for litmus in LITMUS
        if model.name in litmus.models
    )


def test_strong_heuristics_forbid_the_empty_file() -> None:
    changed = EXT4_ORDERED.with_strong_heuristics()
    replace_by_rename = next(litmus for litmus in LITMUS if litmus.name == "replace by rename")
    found = outcomes(changed, replace_by_rename.setup, replace_by_rename.body)
    assert found == replace_by_rename.allowed("ext4-journal")
