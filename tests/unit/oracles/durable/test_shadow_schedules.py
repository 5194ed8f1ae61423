"""Which occurrences an outage leaves, and what the end of a session and of a schedule leave."""

from __future__ import annotations

import pytest

from oracles.durable.nominal_times import OneTime, Periodic
from oracles.durable.shadow_schedules import (
    armed,
    changed,
    claimed,
    deleted,
    name_of,
    paused,
    resumed,
)
from oracles.durable.shadow_sessions import session_ended
from oracles.durable.shadow_state import ExpectedSchedule, ExpectedTrigger, State

PERIOD = 60


def waiting(catch_up: str = "latest", session: str | None = "a") -> State:
    schedule = ExpectedSchedule(Periodic(0, PERIOD), session, PERIOD, catch_up=catch_up)
    return armed(State(), "s", schedule, 0.0)


@pytest.mark.parametrize(
    ("catch_up", "late_s", "fired", "missed", "upcoming"),
    [
        ("latest", 0.0, True, 0, 120),
        ("latest", 270.0, True, 4, 360),
        ("all", 270.0, True, 0, 120),
        ("skip", 120.0, True, 2, 240),
        ("skip", 120.5, False, 0, 120),
        ("skip", 270.0, False, 0, 240),
    ],
)
def test_an_occurrence_is_fired_late_once_or_not_at_all(
    catch_up: str, late_s: float, fired: bool, missed: int, upcoming: int
) -> None:
    state = claimed(waiting(catch_up), name_of("s", PERIOD), PERIOD + late_s)
    first = state.triggers[name_of("s", PERIOD)]
    assert (first.status, first.missed) == ("CLAIMED" if fired else "DONE", missed)
    assert first.resolution == (None if fired else "skipped")
    assert state.schedules["s"].upcoming == upcoming
    assert state.triggers[name_of("s", upcoming)].status == "PENDING"


def test_a_one_time_schedule_ends_with_its_claim() -> None:
    schedule = ExpectedSchedule(OneTime(50), "a", 50, is_once=True)
    state = claimed(armed(State(), "s", schedule, 0.0), name_of("s", 50), 55.0)
    assert (state.schedules["s"].upcoming, state.schedules["s"].ended_at) == (None, 55.0)
    assert list(state.triggers) == [name_of("s", 50)]


def test_a_second_claim_emits_nothing() -> None:
    state = claimed(waiting(), name_of("s", PERIOD), 65.0).given_back(name_of("s", PERIOD))
    assert list(claimed(state, name_of("s", PERIOD), 500.0).triggers) == list(state.triggers)


def test_five_stopped_occurrences_in_a_row_pause_and_a_handled_one_begins_again() -> None:
    state, nominal = waiting(), PERIOD
    for ends in ("FAILED", "DEAD", "handled", "DEAD", "DEAD", "FAILED", "DEAD", "DEAD"):
        assert not state.schedules["s"].is_paused
        name = name_of("s", nominal)
        state = claimed(state, name, float(nominal))
        if ends == "handled":
            state = state.settled(name, ends, float(nominal))
        else:
            state = state.stopped(name, ends, float(nominal))
        nominal += PERIOD
    schedule = state.schedules["s"]
    assert (schedule.is_paused, schedule.upcoming, schedule.ended_at) == (True, None, None)
    assert state.triggers[name_of("s", nominal)].resolution == "superseded"
    assert not state.keys


def test_a_paused_schedule_waits_for_nothing_and_goes_on_after_its_last_occurrence() -> None:
    state = paused(claimed(waiting(), name_of("s", PERIOD), 61.0), "s", 62.0)
    schedule = state.schedules["s"]
    assert (schedule.is_paused, schedule.upcoming, schedule.last) == (True, None, PERIOD)
    assert state.triggers[name_of("s", 120)].resolution == "superseded"
    assert not state.keys
    # The clock was set back before the last occurrence.
    state = resumed(state, "s", 10.0, 10.0)
    schedule = state.schedules["s"]
    assert (schedule.is_paused, schedule.upcoming, schedule.last) == (False, 120, PERIOD)
    assert state.keys["scheduled:s:120"].holder == f"{name_of('s', 120)} again"


def test_a_resumed_schedule_counts_its_stopped_occurrences_anew() -> None:
    state = claimed(waiting(), name_of("s", PERIOD), 61.0)
    state = state.stopped(name_of("s", PERIOD), "DEAD", 62.0)
    assert state.schedules["s"].dead_in_row == 1
    state = resumed(paused(state, "s", 63.0), "s", 64.0, 64.0)
    assert state.schedules["s"].dead_in_row == 0


def test_a_changed_schedule_fires_no_occurrence_again() -> None:
    old = claimed(waiting(), name_of("s", PERIOD), 61.0)
    new = ExpectedSchedule(Periodic(0, 20), "b", None, payload='"new"')
    state = changed(old, "s", new, 10.0, 10.0)
    schedule = state.schedules["s"]
    assert (schedule.upcoming, schedule.last, schedule.payload) == (80, PERIOD, '"new"')
    assert state.triggers[name_of("s", 120)].resolution == "superseded"
    arrived = state.triggers[name_of("s", 80)]
    assert (arrived.status, arrived.session, arrived.payload) == ("PENDING", "b", '"new"')
    assert list(state.keys) == ["scheduled:s:80"]


def test_a_schedule_that_is_to_fire_once_does_so_also_if_it_is_resumed_too_late() -> None:
    schedule = ExpectedSchedule(OneTime(50), "a", 50, is_once=True)
    state = paused(armed(State(), "s", schedule, 0.0), "s", 40.0)
    state = resumed(state, "s", 70.0, 70.0)
    assert state.triggers[state.keys["scheduled-once:s"].holder].status == "PENDING"


def test_a_deleted_schedule_leaves_nothing_waiting_where_it_was_routed_to() -> None:
    state = claimed(waiting(session=None), name_of("s", PERIOD), 60.0)
    state = deleted(state.routed(name_of("s", PERIOD), "b"), "s", 61.0)
    assert {each.resolution for each in state.triggers.values()} == {"superseded"}


def test_the_end_of_a_session_leaves_nothing_of_it() -> None:
    state = waiting()
    for name, key in (("plain", None), ("kept", None), ("reminder", "reminder:1")):
        state = state.emitted(name, ExpectedTrigger(key, "a", 0.0, 10, "1"), 0.0)
    other = ExpectedTrigger("resume:task", "b", 0.0, 5, "1")
    state = state.emitted("other", other, 0.0).checkpointed(
        "task", "a", "ACTIVE", "[]", [("step", "1")], 0.0
    )
    routed = ExpectedTrigger(None, None, 0.0, 10, "1")
    state = claimed(state.emitted("routed", routed, 0.0), "routed", 0.0).routed("routed", "a")
    state = session_ended(claimed(state, "plain", 0.0), "a", 9.0)
    shown = {name: (each.status, each.session) for name, each in state.triggers.items()}
    assert shown == {
        name_of("s", PERIOD): ("DONE", "a"), "plain": ("FAILED", "a"), "kept": ("FAILED", "a"),
        "reminder": ("DONE", "a"), "other": ("PENDING", "b"), "routed": ("PENDING", None),
    }  # fmt: skip
    assert (state.tasks["task"].status, state.tasks["task"].ended_at) == ("CANCELLED", 9.0)
    assert state.schedules["s"].ended_at == 9.0
    assert session_ended(state, "a", 10.0) == state
