"""Every machine under every persistence model, as long as the profile says."""

from __future__ import annotations

import pytest
from hypothesis.stateful import run_state_machine_as_test

from crash_tests.targets.targets import TARGETS
from sim.disk.crash.persistence import MODELS
from tests.crash_tests.rules import leaf_of

pytestmark = pytest.mark.stress


# What is never crashed is the same under every model.
PAIRS = [
    (tag, model)
    for tag, make_target in TARGETS.items()
    for model in (("posix",) if make_target().crash_free else MODELS)
]


@pytest.mark.parametrize(("tag", "model"), PAIRS)
def test_a_machine_finds_nothing(tag: str, model: str) -> None:
    run_state_machine_as_test(leaf_of(tag, model))
