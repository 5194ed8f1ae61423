"""The provider's state in a record: encoded, decoded, and refused when damaged."""

from __future__ import annotations

import pytest

from system.agents.provider_state import ProviderState
from system.storage.codec import seal


def test_a_state_comes_back_with_its_identity_its_date_and_its_blob() -> None:
    state = ProviderState("c1", 3, b"\x00\xff")

    assert ProviderState.of_encoded(state.encoded()) == state


@pytest.mark.parametrize(
    "encoded", [b"", b"not sealed", seal({"identity": 1}), ProviderState("c1").encoded()[:-1]]
)
def test_what_is_no_state_has_no_identity_and_no_blob(encoded: bytes) -> None:
    assert ProviderState.of_encoded(encoded) == ProviderState("")
