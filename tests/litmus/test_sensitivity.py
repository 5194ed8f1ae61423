"""The litmus tests are sensitive: after a change of any field of a model, one of them fails.

Some fields of sequential models mean nothing. Such a model keeps everything in order, and
cuts at calls or at blocks; a model of whole calls cannot be anything but sequential. Nothing
lies between the size and the freeing of a truncation.
"""

from __future__ import annotations

from dataclasses import fields, replace
from enum import Enum

import pytest

from sim.disk.cache.inode import BLOCK_BYTES, SECTOR_BYTES
from sim.disk.crash.persistence import (
    MODELS,
    PersistenceModel,
    Truncation,
)
from tests.litmus.allowed import KILLED, LITMUS
from tests.litmus.body import killed, outcomes


def _others(value: object) -> list[object]:
    match value:
        case bool():
            return [not value]
        case Enum():
            return [other for other in type(value) if other is not value]
        case _:
            return [size for size in (SECTOR_BYTES, BLOCK_BYTES) if size != value]


def _implied(model: PersistenceModel, name: str, value: object) -> bool:
    if not model.sequential:
        return False
    if name == "truncation":
        return not model.unit_bytes or value is Truncation.FREED_LATER
    by_unit = name == ("unit_bytes" if model.unit_bytes else "sequential")
    return by_unit or name in {"data_before_size", "metadata_in_order", "rename_waits"}


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
        crash(changed, litmus.setup, litmus.body) != litmus.allowed(model.name)
        for crash, those in ((killed, KILLED), (outcomes, LITMUS))
        for litmus in those
        if model.name in litmus.models
    )
