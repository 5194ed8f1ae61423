"""Lazy exploration against every crash image, for the examples of its rules."""

from __future__ import annotations

import pytest

from sim.disk.crash.persistence import MODELS, PersistenceModel
from sim.disk.crash.undecided.progress import UNLIMITED
from tests.litmus.lazy_examples import EXAMPLES
from tests.litmus.lazy_law import nested_crashes, one_crash


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_examples_of_the_rules(model: PersistenceModel) -> None:
    for each in EXAMPLES:
        for tears in (UNLIMITED, 1, 0):
            one_crash(each, model, tears)
        nested_crashes(each, model, 1)
