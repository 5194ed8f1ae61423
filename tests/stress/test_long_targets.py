"""Every target under every persistence model, as long as the profile says."""

from __future__ import annotations

import pytest
from hypothesis.stateful import run_state_machine_as_test

from sim.disk.crash.persistence import MODELS
from tests.crash_tests.rules import leaf_of
from tests.registry import REGISTRY

pytestmark = pytest.mark.stress


# A target that is never crashed behaves alike under every model.
PAIRS = [
    (target.tag, model)
    for target in REGISTRY.all_targets()
    for model in (("posix",) if target.make_target().crash_free else MODELS)
]


@pytest.mark.parametrize(("tag", "model"), PAIRS)
def test_no_violation_is_found(tag: str, model: str) -> None:
    run_state_machine_as_test(leaf_of(tag, model))
