"""The shadow of an event log judges what a recovered log may contain."""

from __future__ import annotations

import pytest

from oracles.shadow_log import ShadowLog
from oracles.violation import Duplicated, Invented, LostAck, Reordered, Resurrected, SilentEmpty


def _shadow(acknowledged: int, in_flight: int = 0) -> ShadowLog[int]:
    shadow: ShadowLog[int] = ShadowLog()
    for entry in range(acknowledged):
        shadow.begin(entry)
        shadow.acknowledge()
    for entry in range(acknowledged, acknowledged + in_flight):
        shadow.begin(entry)
    return shadow


@pytest.mark.parametrize("actual", [[0, 1], [0, 1, 2], [0, 1, 3], [0, 1, 2, 3]], ids=str)
def test_acknowledged_entries_with_any_in_flight_are_allowed(actual: list[int]) -> None:
    _shadow(2, in_flight=2).settle(actual)


@pytest.mark.parametrize(
    ("actual", "violation"),
    [
        ([0], LostAck),
        ([], SilentEmpty),
        ([1, 0], Reordered),
        ([0, 1, 1], Duplicated),
        ([0, 1, 7], Invented),
        ([0, 2], LostAck),
        ([0, 2, 1], Reordered),
        ([2, 0, 1], Reordered),
    ],
    ids=str,
)
def test_a_broken_log_is_called_by_the_property_it_breaks(
    actual: list[int], violation: type[Exception]
) -> None:
    with pytest.raises(violation):
        _shadow(2, in_flight=1).settle(actual)


def test_an_entry_settled_as_absent_must_not_come_back() -> None:
    shadow = _shadow(1, in_flight=1)
    shadow.settle([0])
    with pytest.raises(Resurrected):
        shadow.check([0, 1])


def test_an_entry_settled_as_present_must_stay() -> None:
    shadow = _shadow(1, in_flight=1)
    shadow.settle([0, 1])
    assert shadow.acknowledged == [0, 1]
    with pytest.raises(LostAck):
        shadow.settle([0])


def test_a_look_without_a_crash_settles_nothing() -> None:
    shadow = _shadow(1, in_flight=1)
    shadow.check([0, 1])
    shadow.check([0])
    assert shadow.in_flight == [1]


def test_a_refused_append_may_stand_before_a_later_acknowledged_one() -> None:
    shadow = _shadow(1, in_flight=1)
    shadow.begin(2)
    shadow.acknowledge()
    shadow.check([0, 1, 2])
    shadow.settle([0, 2])
    assert shadow.acknowledged == [0, 2]


def test_the_evidence_shows_expected_and_actual() -> None:
    with pytest.raises(LostAck) as lost:
        _shadow(2).settle([0])
    assert lost.value.evidence == {
        "entry": 1,
        "acknowledged": [0, 1],
        "in_flight": [],
        "actual": [0],
    }
    assert lost.value.property_name == "LostAck"
