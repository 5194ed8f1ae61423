"""The six stages under every persistence model, as long as the profile says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given

from sim.disk.crash.persistence import MODELS
from system.runtime import Options
from tests.crash_tests.six_stages import CRASHES, OPTIONS, WISHES, Crash, Wish, six_stages

pytestmark = pytest.mark.stress


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@given(wishes=WISHES, crash=CRASHES)
def test_recovered_events_are_the_acknowledged_ones_and_some_in_flight(
    options: Options, model: str, wishes: Sequence[Wish], crash: Crash
) -> None:
    six_stages(wishes, crash, MODELS[model], options)
