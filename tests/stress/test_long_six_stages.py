"""The six stages under every persistence model, as long as the profile says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given

from sim.disk.crash.persistence import MODELS
from system.storage.framing import Framing
from tests.crash_tests.six_stages import CRASHES, WISHES, Crash, Wish, six_stages

pytestmark = pytest.mark.stress


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("framing", Framing)
@given(wishes=WISHES, crash=CRASHES)
def test_recovered_events_are_the_acknowledged_ones_and_some_in_flight(
    framing: Framing, model: str, wishes: Sequence[Wish], crash: Crash
) -> None:
    six_stages(wishes, crash, MODELS[model], framing)
