"""The shadow of an event log: the contents that a recovered log may have."""

from __future__ import annotations

import pytest

from oracles.shadow_log import Excused, ShadowLog
from oracles.violation import (
    Duplicated,
    LogGap,
    LostAck,
    Phantom,
    Reordered,
    Resurrected,
    SilentEmpty,
    Violation,
)


def _shadow(acknowledged: int, unsynced: int = 0, in_flight: int = 0) -> ShadowLog[int]:
    """A shadow of the entries 0, 1, 2, … in these states."""
    shadow: ShadowLog[int] = ShadowLog()
    entries = iter(range(acknowledged + unsynced + in_flight))
    for _ in range(acknowledged):
        shadow.begin(next(entries))
        shadow.acknowledge()
    for _ in range(unsynced):
        shadow.begin(next(entries))
        shadow.acknowledge_unsynced()
    if in_flight:
        shadow.begin(*entries)
    return shadow


@pytest.mark.parametrize("actual", [[0, 1], [0, 1, 2], [0, 1, 2, 3]], ids=str)
def test_acknowledged_entries_and_a_prefix_of_those_in_flight_are_allowed(
    actual: list[int],
) -> None:
    _shadow(2, in_flight=2).settle(actual)


@pytest.mark.parametrize("actual", [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]], ids=str)
def test_a_power_cut_leaves_a_prefix_of_the_unsynced_entries(actual: list[int]) -> None:
    _shadow(1, unsynced=2, in_flight=1).settle(actual)


@pytest.mark.parametrize("actual", [[0], [0, 1]], ids=str)
def test_an_unsynced_entry_survives_a_kill(actual: list[int]) -> None:
    with pytest.raises(LostAck, match="an unsynced entry is lost although the power was not cut"):
        _shadow(1, unsynced=2).settle(actual, unsynced_kept=True)


def test_an_append_acknowledges_the_unsynced_entries_before_it() -> None:
    shadow = _shadow(1, unsynced=1)
    shadow.begin(2, 3)
    shadow.acknowledge()
    assert shadow.acknowledged == [0, 1, 2, 3]
    assert shadow.settled


@pytest.mark.parametrize(
    ("actual", "violation"),
    [
        ([0], LostAck),
        ([], SilentEmpty),
        ([1, 0], Reordered),
        ([0, 1, 1], Duplicated),
        ([0, 1, 7], Phantom),
        ([0, 2], LostAck),
        ([0, 2, 1], Reordered),
        ([2, 0, 1], Reordered),
        ([0, 1, 3], LogGap),
        ([0, 1, 2, 4], LogGap),
        ([0, 1, 3, 2], Reordered),
    ],
    ids=str,
)
def test_a_broken_log_is_reported_by_its_property(
    actual: list[int], violation: type[Exception]
) -> None:
    with pytest.raises(violation):
        _shadow(2, unsynced=1, in_flight=2).settle(actual)


def test_an_entry_settled_as_absent_must_not_come_back() -> None:
    shadow = _shadow(1, in_flight=1)
    assert not shadow.settle([0])
    with pytest.raises(Resurrected):
        shadow.check([0, 1])


def test_an_entry_settled_as_present_must_stay() -> None:
    shadow = _shadow(1, unsynced=1, in_flight=1)
    assert shadow.settle([0, 1, 2])
    assert shadow.acknowledged == [0, 1, 2]
    with pytest.raises(LostAck):
        shadow.settle([0])


def test_a_read_without_a_crash_settles_nothing_and_shows_all_unsynced_entries() -> None:
    shadow = _shadow(1, unsynced=1, in_flight=1)
    shadow.check([0, 1, 2])
    shadow.check([0, 1])
    assert (shadow.unsynced, shadow.in_flight) == ([1], [2])
    with pytest.raises(LostAck):
        shadow.check([0])


def test_a_refused_call_has_left_nothing() -> None:
    shadow = _shadow(1, unsynced=1, in_flight=2)
    shadow.refuse()
    shadow.check([0, 1])
    with pytest.raises(Resurrected):
        shadow.settle([0, 1, 2])


def test_a_failed_sync_puts_unsynced_entries_in_flight_again() -> None:
    shadow = _shadow(1, unsynced=1, in_flight=1)
    shadow.stop()
    shadow.begin(3)
    shadow.refuse()
    shadow.check([0])
    shadow.settle([0, 1])
    assert shadow.acknowledged == [0, 1]


def test_the_evidence_shows_expected_and_actual() -> None:
    with pytest.raises(LostAck) as lost:
        _shadow(2, unsynced=1).settle([0])
    assert lost.value.evidence == {
        "entry": 1,
        "acknowledged": [0, 1],
        "unsynced": [2],
        "in_flight": [],
        "actual": [0],
    }
    assert lost.value.property_name == "LostAck"


@pytest.mark.parametrize(
    ("excused", "actual"),
    [
        (Excused.LAST, []),
        (Excused.LAST, [1]),
        (Excused.LAST, [1, 2, 3]),
        (Excused.ANY, []),
        (Excused.ANY, [2]),
        (Excused.ANY, [1, 3]),
    ],
)
def test_damage_excuses_missing_entries_which_then_stay_lost(
    excused: Excused, actual: list[int]
) -> None:
    shadow = _damaged()
    shadow.settle(actual, excused=excused)
    shadow.check(actual)
    lost = next((entry for entry in (1, 2, 3) if entry not in actual), None)
    if lost is not None:
        with pytest.raises(Resurrected):
            shadow.check([*actual, lost])


@pytest.mark.parametrize(
    ("excused", "actual", "broken"),
    [
        (Excused.NONE, [1], LostAck),
        (Excused.LAST, [2], LostAck),
        (Excused.ANY, [2, 1], Reordered),
        (Excused.ANY, [1, 1], Duplicated),
        (Excused.ANY, [1, 9], Phantom),
        (Excused.ANY, [1, 0], Resurrected),
    ],
)
def test_damage_excuses_nothing_but_missing_entries(
    excused: Excused, actual: list[int], broken: type[Violation]
) -> None:
    with pytest.raises(broken):
        _damaged().settle(actual, excused=excused)


def _damaged() -> ShadowLog[int]:
    """Two acknowledged entries, one in flight; entry 0 was refused."""
    shadow = ShadowLog[int]()
    shadow.begin(0)
    shadow.refuse()
    shadow.begin(1, 2)
    shadow.acknowledge()
    shadow.begin(3)
    return shadow


def _misplaced() -> ShadowLog[int]:
    """Two acknowledged entries; entry 2 was refused, and its write was misdirected."""
    shadow = _shadow(2, in_flight=1)
    shadow.refuse(misplaced=True)
    return shadow


def test_a_refused_entry_in_another_place_may_be_found_once_in_a_damaged_log() -> None:
    shadow = _misplaced()
    shadow.settle([0, 2], excused=Excused.ANY)
    assert shadow.acknowledged == [0, 2]
    shadow = _misplaced()
    shadow.settle([0, 1], excused=Excused.ANY)
    with pytest.raises(Resurrected):
        shadow.settle([0, 1, 2], excused=Excused.ANY)


def test_a_log_without_damage_has_no_misplaced_entry() -> None:
    with pytest.raises(Violation):
        _misplaced().settle([0, 1, 2])
