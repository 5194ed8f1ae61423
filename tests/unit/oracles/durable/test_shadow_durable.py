"""A wrong row is reported by the violation that names what is wrong, and a right one by none."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from oracles.durable.nominal_times import Periodic
from oracles.durable.rows import Rows
from oracles.durable.shadow_durable import DAY_S, WEEK_S, ShadowDurable
from oracles.durable.shadow_schedules import armed, claimed, deleted, paused
from oracles.durable.shadow_state import ExpectedSchedule, ExpectedTrigger, State
from oracles.durable.violations import (
    EndlessRetry,
    FreedKey,
    KeptTooLong,
    MovedTime,
    RepeatedTrigger,
    TornTransaction,
    UncountedAttempt,
    WrongSchedule,
)
from oracles.violation import InvalidState, LostAck, Phantom, Resurrected, TornRecord, Violation
from tests.unit.oracles.durable.rows_of import rows_of

NOW = 1_000.0
STEP = ("step", "1")


class Story:
    """A shadow that has seen all kinds of row, at ``now``."""

    def __init__(self) -> None:
        self.now = NOW
        self.shadow = ShadowDurable(lambda: self.now)
        state = State()
        for number, key in enumerate(("skill:w:1", None, None, None, "memory:a:1"), 1):
            trigger = ExpectedTrigger(key, "a", NOW, 10, f'{{"n":{number}}}')
            state = state.emitted(f"t{number}", trigger, NOW)
        state = claimed(state, "t2", NOW)
        state = claimed(state, "t3", NOW).stopped("t3", "DEAD", NOW)
        state = claimed(state, "t4", NOW).settled("t4", "handled", NOW)
        schedule = ExpectedSchedule(Periodic(900, 60), "a", 1_020)
        state = armed(state, "s1", schedule, NOW)
        state = state.checkpointed("task", "a", "ACTIVE", "[]", [STEP, STEP], NOW)
        self.state = state.intended("activity:x:1", "{}")
        self.take(self.state)

    def take(self, state: State) -> None:
        """Let a transaction lead to a state."""
        self.shadow.begin(state)
        self.shadow.acknowledge(rows_of(state))


@pytest.fixture
def story() -> Story:
    return Story()


def trigger(rows: Rows, name: str) -> dict[str, Any]:
    found = next(row for row in rows.triggers if row["id"] == name.upper())
    assert isinstance(found, dict)
    return found


def changed(name: str, **values: object) -> Callable[[Any], None]:
    """Return a change of one trigger."""
    return lambda rows: trigger(rows, name).update(values)


def without(name: str) -> Callable[[Any], None]:
    return lambda rows: rows.triggers.remove(trigger(rows, name))


def again(name: str, **values: object) -> Callable[[Any], None]:
    return lambda rows: rows.triggers.append(trigger(rows, name) | {"id": "NEW", **values})


WRONG: dict[str, tuple[type[Violation], Callable[[Any], object]]] = {
    "a trigger is gone": (LostAck, without("t1")),
    "an unknown trigger": (Phantom, again("t2")),
    "a second trigger of a key": (RepeatedTrigger, again("t1")),
    "another time": (MovedTime, changed("t1", fire_at=NOW + 1)),
    "a pause of nothing": (MovedTime, changed("t1", not_before=NOW + 30, due_at=NOW + 30)),
    "due before its time": (MovedTime, changed("t1", due_at=NOW - 1)),
    "a claim that is not counted": (UncountedAttempt, changed("t2", attempts=0)),
    "a claim without a fence": (UncountedAttempt, changed("t2", fence=0)),
    "a dead trigger that is run": (EndlessRetry, changed("t3", status="PENDING")),
    "a settled trigger that is back": (Resurrected, changed("t4", status="PENDING")),
    "settled without a turn": (LostAck, changed("t2", status="DONE")),
    "claimed without a turn": (InvalidState, changed("t1", status="CLAIMED")),
    "another payload": (TornRecord, changed("t1", payload_json="[]")),
    "another session": (InvalidState, changed("t1", session_id="b")),
    "another priority": (InvalidState, changed("t1", priority=1)),
    "another source": (InvalidState, changed("t1", source="MEMORY")),
    "another description": (InvalidState, changed("t1", description="another")),
    "routed by nothing": (InvalidState, changed("t1", routed=1)),
    "another end": (InvalidState, changed("t4", resolution="superseded")),
    "a free key": (FreedKey, lambda rows: rows.keys.pop("skill:w:1")),
    "a free key of an open trigger": (FreedKey, lambda rows: rows.keys.pop("memory:a:1")),
    "a key of another trigger": (InvalidState, lambda rows: rows.keys.update({"skill:w:1": "T2"})),
    "a key of nothing": (Phantom, lambda rows: rows.keys.update({"skill:w:2": "T1"})),
    "a lost schedule": (LostAck, lambda rows: rows.schedules.pop("s1")),
    "an unknown schedule": (Phantom, lambda rows: rows.schedules.update({"s2": {}})),
    "a later occurrence": (WrongSchedule, lambda rows: rows.schedules["s1"].update(next_fire_at=9)),
    "a time that is passed over": (
        WrongSchedule, lambda rows: rows.schedules["s1"].update(last_nominal=960),
    ),
    "a paused schedule": (WrongSchedule, lambda rows: rows.schedules["s1"].update(paused=1)),
    "another kind": (WrongSchedule, lambda rows: rows.schedules["s1"].update(kind="cron")),
    "another period": (WrongSchedule, lambda rows: rows.schedules["s1"].update(spec="61")),
    "another zone": (WrongSchedule, lambda rows: rows.schedules["s1"].update(zone="Asia/Tokyo")),
    "another receiver": (WrongSchedule, lambda rows: rows.schedules["s1"].update(session_id="b")),
    "another importance": (WrongSchedule, lambda rows: rows.schedules["s1"].update(priority=31)),
    "another subject": (WrongSchedule, lambda rows: rows.schedules["s1"].update(description="b")),
    "another body": (WrongSchedule, lambda rows: rows.schedules["s1"].update(payload_json="1")),
    "another rule": (WrongSchedule, lambda rows: rows.schedules["s1"].update(catch_up="all")),
    "another count": (WrongSchedule, lambda rows: rows.schedules["s1"].update(dead_in_row=1)),
    "an ended schedule": (WrongSchedule, lambda rows: rows.schedules["s1"].update(ended_at=NOW)),
    "a lost task": (LostAck, lambda rows: rows.tasks.pop("task")),
    "an unknown task": (Phantom, lambda rows: rows.tasks.update({"other": {}})),
    "another progress": (TornRecord, lambda rows: rows.tasks["task"].update(last_seq=1)),
    "other todos": (TornRecord, lambda rows: rows.tasks["task"].update(todos_json="[1]")),
    "a lost event": (TornRecord, lambda rows: rows.events.update(task=(STEP,))),
    "a rewritten event": (
        TornRecord, lambda rows: rows.events.update(task=(("step", "2"), STEP)),
    ),
    "a lost activity": (LostAck, lambda rows: rows.activities.clear()),
    "other arguments": (
        LostAck, lambda rows: rows.activities["activity:x:1"].update(arguments_json="[]"),
    ),
    "an unknown activity": (Phantom, lambda rows: rows.activities.update({"activity:x:2": {}})),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_each_wrong_row_is_reported_as_what_it_is(story: Story, wrong: str) -> None:
    violation, change = WRONG[wrong]
    rows = deepcopy(rows_of(story.state))
    story.shadow.acknowledge(rows)
    change(rows)
    with pytest.raises(Violation) as raised:
        story.shadow.acknowledge(rows)
    assert type(raised.value) is violation, str(raised.value)


def test_a_transaction_in_flight_leaves_the_state_before_it_or_the_one_after_it(
    story: Story,
) -> None:
    after = story.state.settled("t2", "handled", NOW)
    story.shadow.begin(after)
    assert story.shadow.settle(rows_of(after), lambda state: state, NOW)
    story.shadow.begin(after.settled("t1", "discarded", NOW))
    assert not story.shadow.settle(rows_of(after), lambda state: state, NOW)
    assert story.shadow.state.triggers["t2"].status == "DONE"


def test_a_durable_line_leaves_the_state_after_it(story: Story) -> None:
    story.shadow.begin(story.state.settled("t2", "handled", NOW), certain=True)
    with pytest.raises(Resurrected):
        story.shadow.settle(rows_of(story.state), lambda state: state, NOW)


def test_a_part_of_a_transaction_is_torn(story: Story) -> None:
    settled = story.state.settled("t2", "handled", NOW)
    story.shadow.begin(settled.checkpointed("task", "a", "DONE", "[]", [STEP], NOW))
    with pytest.raises(TornTransaction):
        story.shadow.settle(rows_of(settled), lambda state: state, NOW)


def test_a_schedule_that_changes_without_its_trigger_is_torn(story: Story) -> None:
    after = paused(story.state, "s1", NOW)
    half = story.state.with_schedule("s1", after.schedules["s1"])
    story.shadow.begin(after)
    with pytest.raises(TornTransaction):
        story.shadow.settle(rows_of(half), lambda state: state, NOW)


def test_a_schedule_that_no_transaction_has_made_is_wrong_and_not_torn(story: Story) -> None:
    schedule = replace(story.state.schedules["s1"], last=1_020)
    other = story.state.with_schedule("s1", schedule)
    story.shadow.begin(paused(story.state, "s1", NOW))
    with pytest.raises(WrongSchedule):
        story.shadow.settle(rows_of(other), lambda state: state, NOW)


def test_a_trigger_that_was_emitted_and_is_nowhere_is_lost(story: Story) -> None:
    trigger = ExpectedTrigger(None, "a", NOW, 10, "null")
    story.shadow.begin(story.state.emitted("t6", trigger, NOW))
    with pytest.raises(LostAck, match="a trigger is gone"):
        story.shadow.acknowledge(rows_of(story.state))


def test_a_name_that_nothing_has_emitted_is_unknown(story: Story) -> None:
    assert story.shadow.name_of("T1") == "t1"
    with pytest.raises(Phantom):
        story.shadow.name_of("T9")


# -- the end of rows -------------------------------------------------------------------


def collect(story: Story, at: float, rows: Rows, old_keys: tuple[str, ...] = ()) -> None:
    story.now = at
    story.shadow.begin_collect(at, old_keys)
    story.shadow.acknowledge_collect(rows, old_keys)


def collected(state: State) -> Rows:
    return rows_of(state.without_trigger("t4"))


def test_a_settled_trigger_is_removed_after_a_day_and_not_before(story: Story) -> None:
    collect(story, NOW + DAY_S - 10, rows_of(story.state))
    with pytest.raises(LostAck):
        collect(story, NOW + DAY_S - 10, collected(story.state))
    with pytest.raises(KeptTooLong, match="a row"):
        collect(story, NOW + DAY_S + 10, rows_of(story.state))


def test_exactly_the_settled_rows_are_gone(story: Story) -> None:
    collect(story, NOW + DAY_S + 10, collected(story.state))
    assert "t4" not in story.shadow.state.triggers
    assert story.shadow.name_of("T4") == "t4"


@pytest.mark.parametrize(
    ("name", "key", "priority", "resolution"),
    [
        ("resume:task #0", "resume:task", 5, "handled"),
        ("s at 60", "scheduled:s:60", 30, "superseded"),
    ],
)
def test_the_name_of_a_removed_trigger_is_given_again(
    story: Story, name: str, key: str, priority: int, resolution: str
) -> None:
    trigger = ExpectedTrigger(key, "a", NOW, priority, "null")
    state = story.state.emitted(name, trigger, NOW).settled(name, resolution, NOW)
    state = state.without_keys(key)
    story.take(state)
    gone = state.without_trigger(name).without_trigger("t4")
    collect(story, NOW + DAY_S + 10, rows_of(gone))
    assert name not in story.shadow.ids
    assert story.shadow.name_of(name.upper()) == f"{name}, removed as {name.upper()}"


def test_a_key_that_refuses_nothing_is_removed(story: Story) -> None:
    state = story.state.settled("t5", "handled", NOW)
    story.take(state)
    with pytest.raises(KeptTooLong, match="a key"):
        collect(story, NOW + 10, rows_of(state))


def test_a_retried_trigger_holds_its_own_key_and_no_superseded_one() -> None:
    state = State()
    for name, key in (("old", "memory:a:0"), ("new", "memory:a:1")):
        trigger = ExpectedTrigger(key, "a", NOW, 50, "null")
        state = state.emitted(name, trigger, NOW)
    assert state.holder("memory:a:0", NOW) == "new"
    retried = claimed(state, "new", NOW).stopped("new", "FAILED", NOW).retried("new", NOW)
    assert [retried.holder(f"memory:a:{slot}", NOW) for slot in (0, 1)] == [None, "new"]


def test_a_key_of_scope_window_is_kept_with_its_trigger(story: Story) -> None:
    trigger = ExpectedTrigger("immediate:k", "a", 10 * WEEK_S, 10, "null")
    state = story.state.emitted("kept", trigger, NOW)
    story.take(state)
    kept = state.without_trigger("t4")
    collect(story, NOW + WEEK_S + 100, rows_of(kept))
    assert "kept" in story.shadow.state.triggers


def test_a_key_of_scope_window_outlives_its_trigger(story: Story) -> None:
    trigger = ExpectedTrigger("immediate:k", "a", NOW, 10, "null")
    state = story.state.emitted("gone", trigger, NOW).settled("gone", "handled", NOW)
    story.take(state)
    gone = state.without_trigger("gone").without_trigger("t4")
    with pytest.raises(FreedKey):
        collect(story, NOW + WEEK_S - 100, rows_of(gone.without_keys("immediate:k")))
    story.take(story.state)
    collect(story, NOW + WEEK_S + 100, rows_of(gone.without_keys("immediate:k")))


def test_an_ended_task_is_removed_after_a_week(story: Story) -> None:
    state = story.state.checkpointed("task", "a", "DONE", "[]", [STEP], NOW)
    story.take(state)
    kept = collected(state)
    gone = replace(kept, tasks={}, events={})
    with pytest.raises(LostAck, match="task"):
        collect(story, NOW + WEEK_S - 10, gone)
    with pytest.raises(KeptTooLong, match="a row"):
        collect(story, NOW + WEEK_S + 10, kept)


def test_an_ended_schedule_is_removed_after_a_week(story: Story) -> None:
    state = deleted(story.state, "s1", NOW)
    story.take(state)
    kept = collected(state)
    gone = replace(kept, schedules={})
    with pytest.raises(LostAck, match="schedule"):
        collect(story, NOW + WEEK_S - 10, gone)
    with pytest.raises(KeptTooLong, match="a row"):
        collect(story, NOW + WEEK_S + 10, kept)


def test_a_task_that_begins_again_ends_again(story: Story) -> None:
    ended = story.state.checkpointed("task", "a", "DONE", "[]", [STEP], NOW)
    story.take(ended)
    story.now = NOW + WEEK_S
    story.take(
        ended.without_trigger("t4").checkpointed("task", "a", "ACTIVE", "[]", [STEP], story.now)
    )
    ended = story.shadow.state.checkpointed("task", "a", "DONE", "[]", [STEP], story.now)
    story.take(ended)
    collect(story, story.now + 10, rows_of(ended))


def test_a_line_that_is_applied_after_the_clock_was_set_back_has_ended_then(
    story: Story,
) -> None:
    ended = story.state.checkpointed("task", "a", "DONE", "[]", [STEP], NOW)
    story.shadow.begin(ended, certain=True)
    story.now = NOW - 500
    assert story.shadow.settle(rows_of(ended), lambda state: state, story.now)
    gone = replace(collected(ended), tasks={}, events={})
    collect(story, NOW + WEEK_S - 100, gone)
    assert "task" not in story.shadow.state.tasks


def test_a_settled_activity_is_removed_after_a_day(story: Story) -> None:
    with pytest.raises(KeptTooLong, match="activity"):
        collect(story, NOW, rows_of(story.state), ("activity:x:1",))
