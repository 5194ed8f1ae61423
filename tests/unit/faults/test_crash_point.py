"""Crash points print on one line and parse back; a malformed one is refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults.crash_point import CrashKind, CrashPoint, Phase
from sim.disk.crash.survivor_set import SurvivorSet
from sim.errors import HarnessError

MANY = "1" * 5000
"""More digits than Python turns into a number."""

_indices = st.lists(st.integers(0, 99), max_size=5).map(tuple)
_survivors = st.builds(
    SurvivorSet,
    lost=_indices,
    torn=st.lists(st.tuples(st.integers(0, 99), st.integers(1, 511)), max_size=3).map(tuple),
    stale=_indices,
)
_numbers = st.integers(1, 10_000)
_points = st.one_of(
    st.builds(
        CrashPoint, _numbers, st.sampled_from(Phase), st.just(CrashKind.POWER_CUT), _survivors
    ),
    st.builds(CrashPoint, _numbers, st.sampled_from(Phase), st.just(CrashKind.KILL)),
    st.builds(
        CrashPoint, _numbers, st.just(Phase.DURING), st.just(CrashKind.KILL),
        kept=st.integers(0, 20_000),
    ),
)  # fmt: skip


@given(_points)
def test_every_crash_point_parses_back_from_its_one_line(point: CrashPoint) -> None:
    text = str(point)
    assert "\n" not in text
    assert CrashPoint.parse(text) == point


def test_a_crash_point_prints_its_operation_phase_kind_and_survivors() -> None:
    survivors = SurvivorSet(lost=(0, 3), torn=((4, 100),), stale=(0,))
    point = CrashPoint(12, Phase.DURING, CrashKind.POWER_CUT, survivors)
    assert str(point) == "12 during power-cut lost=0,3 torn=4:100 stale=0"
    assert str(CrashPoint(1, Phase.BEFORE, CrashKind.KILL)) == "1 before kill"
    assert str(CrashPoint(2, Phase.DURING, CrashKind.KILL, kept=4096)) == "2 during kill kept=4096"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("12 before", "crash point '12 before' needs an operation, a phase and a kind"),
        ("x before kill", "operation number 'x' of a crash point is not a whole number"),
        (
            f"{MANY} before kill",
            f"operation number '{MANY}' of a crash point is not a whole number",
        ),
        ("² before kill", "operation number '²' of a crash point is not a whole number"),
        ("0 before kill", "operations count from 1, got operation=0"),
        ("1 amid kill", "phase 'amid' of a crash point is none of before, during, after"),
        ("1 after flood", "kind of crash 'flood' of a crash point is none of kill, power-cut"),
        ("1 after power-cut lots=1", "piece 'lots=1' of a crash point is not one of kept="),
        ("1 after power-cut lost=", "piece 'lost=' of a crash point is not one of kept="),
        ("1 after power-cut lost=1 lost=2", "piece 'lost=2' of a crash point is not one of"),
        ("1 after power-cut lost=1,x", "unsynced operation 'x' of a crash point is not a whole"),
        ("1 after power-cut lost=-1", "unsynced operation '-1' of a crash point is not a whole"),
        ("1 after power-cut torn=3", "torn write '3' in a crash point is not 'operation:bytes'"),
        ("1 after power-cut torn=3:x", "torn write 'x' of a crash point is not a whole number"),
        ("1 after power-cut kept=7", "kept=7 belongs to a kill during a write"),
        ("1 after kill kept=7", "kept=7 belongs to a kill during a write"),
        ("1 after kill lost=1", "a kill loses nothing, got survivors="),
    ],
)
def test_a_malformed_crash_point_is_one_sentence_naming_the_piece(
    text: str, complaint: str
) -> None:
    with pytest.raises(HarnessError) as raised:
        CrashPoint.parse(text)
    assert str(raised.value).startswith(complaint)
    assert "\n" not in str(raised.value)


def test_a_negative_number_of_kept_bytes_is_refused() -> None:
    with pytest.raises(HarnessError, match="kept=-1"):
        CrashPoint(1, Phase.DURING, CrashKind.KILL, kept=-1)
