"""The shadow of a replaced file: old or new, never a mixture, acknowledged survives."""

from __future__ import annotations

import pytest

from oracles.shadow_file import ShadowFile
from oracles.violation import LostAck, Resurrected, SilentEmpty, TornRecord


def _shadow() -> ShadowFile[bytes]:
    """Return a shadow with ``old`` overwritten by ``now``, and ``next`` in flight."""
    shadow: ShadowFile[bytes] = ShadowFile()
    for value in (b"old", b"now"):
        shadow.begin(value)
        shadow.acknowledge()
    shadow.begin(b"next")
    return shadow


@pytest.mark.parametrize("actual", [b"now", b"next"])
def test_the_acknowledged_value_and_the_one_in_flight_are_allowed(actual: bytes) -> None:
    _shadow().settle(actual, "f")


@pytest.mark.parametrize(
    ("actual", "violation"),
    [
        (b"old", LostAck),
        (b"", SilentEmpty),
        (None, SilentEmpty),
        (b"ne", TornRecord),
        (b"nexw", TornRecord),
    ],
    ids=str,
)
def test_anything_else_is_called_by_the_property_it_breaks(
    actual: bytes | None, violation: type[Exception]
) -> None:
    with pytest.raises(violation):
        _shadow().settle(actual, "f")


def test_the_value_that_lost_must_not_come_back() -> None:
    shadow = _shadow()
    shadow.settle(b"now", "f")
    with pytest.raises(Resurrected):
        shadow.check(b"next", "f")
    shadow = _shadow()
    shadow.settle(b"next", "f")
    with pytest.raises(Resurrected):
        shadow.check(b"now", "f")


def test_several_failed_writes_stay_in_flight_until_one_is_acknowledged() -> None:
    shadow = _shadow()
    shadow.begin(b"later")
    for allowed in (b"now", b"next", b"later"):
        shadow.check(allowed, "f")
    shadow.acknowledge()
    shadow.check(b"later", "f")
    with pytest.raises(LostAck):
        shadow.check(b"next", "f")


def test_a_file_may_be_absent_until_its_first_write_is_acknowledged() -> None:
    shadow: ShadowFile[bytes] = ShadowFile()
    shadow.settle(None, "f")
    shadow.begin(b"first")
    shadow.settle(None, "f")
    shadow.begin(b"second")
    shadow.settle(b"second", "f")
    assert shadow.acknowledged == b"second"
