"""Lazy exploration against every crash image, for the examples of its rules.

In the gate, the weakest model has all examples; ``test_lazy.py`` has random ones for each model.
"""

from __future__ import annotations

import pytest

from sim.disk.crash.persistence import MODELS, POSIX, PersistenceModel
from sim.disk.crash.undecided.progress import UNLIMITED
from tests.litmus.lazy_examples import EXAMPLES
from tests.litmus.lazy_law import nested_crashes, one_crash
from tests.sample import Sample, in_the_gate

IN_THE_GATE = in_the_gate(MODELS.values(), lambda model: model is POSIX)


@pytest.mark.parametrize("model", IN_THE_GATE, ids=list(MODELS))
def test_examples_of_the_rules(model: PersistenceModel, sample: Sample) -> None:
    for each in EXAMPLES:
        for tears in sample((UNLIMITED, 1, 0), 2):
            one_crash(each, model, tears)
        nested_crashes(each, model, 1)
