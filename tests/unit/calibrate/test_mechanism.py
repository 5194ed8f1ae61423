"""Forbidden outcomes name the field of the model, and the known class, that explains them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from powercut.calibrate.calibration_file import read_rows
from powercut.calibrate.mechanism import _CLASSES, _MEANINGS
from powercut.calibrate.tally import Tally
from sim.disk.crash.persistence import PersistenceModel
from tests.litmus.test_recordings import COUNTEREXAMPLES, OVERLOOKING, UNCONDITIONAL, name_of

COUNTEREXAMPLE_ROWS: list[Any] = list(read_rows(COUNTEREXAMPLES))
ROWS = [row for row in COUNTEREXAMPLE_ROWS if row["class"] in OVERLOOKING]


def classes_of(text: str) -> set[str]:
    return set(text.replace(",", "").split())


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_a_model_that_overlooks_a_class_is_explained_by_it(row: Any) -> None:
    found = Tally(lambda _: OVERLOOKING[row["class"]]).contradiction(row)
    assert found is not None
    _, _, known = found.cause.rpartition("(")
    assert row["class"] in classes_of(known.rstrip(")"))


def test_every_field_of_a_model_has_a_meaning() -> None:
    # Only power cuts are compared with the kernel, no kills.
    others = {"name", "torn_direct_writes"}
    assert {field.name for field in fields(PersistenceModel)} - others == {*_MEANINGS}


def test_classes_are_those_that_a_field_can_explain() -> None:
    known = set().union(*map(classes_of, _CLASSES.values()))
    assert known == set(OVERLOOKING) - UNCONDITIONAL
