"""Explored exhaustively, each litmus test has exactly the outcomes that its model allows."""

from __future__ import annotations

import pytest

from sim.disk.crash.persistence import MODELS
from tests.litmus.allowed import LITMUS
from tests.litmus.body import outcomes
from tests.litmus.litmus import Litmus

CASES = [(litmus, model) for litmus in LITMUS for model in litmus.models]


@pytest.mark.parametrize(
    ("litmus", "model"), CASES, ids=[f"{litmus.name} [{model}]" for litmus, model in CASES]
)
def test_observed_outcomes_equal_the_allowed_ones(litmus: Litmus, model: str) -> None:
    assert outcomes(MODELS[model], litmus.setup, litmus.body) == litmus.allowed(model)


@pytest.mark.parametrize("model", MODELS)
def test_each_model_has_at_least_eight_litmus_tests(model: str) -> None:
    assert sum(model in litmus.models for litmus in LITMUS) >= 8
