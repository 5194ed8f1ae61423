"""The first difference between the expected rows and the actual ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from oracles.durable.rows import Row, Rows
from oracles.durable.shadow_state import (
    OPEN,
    SCHEDULE_PRIORITY,
    ExpectedSchedule,
    ExpectedTrigger,
    State,
)
from oracles.durable.violations import (
    EndlessRetry,
    FreedKey,
    MovedTime,
    RepeatedTrigger,
    UncountedAttempt,
    WrongSchedule,
)
from oracles.violation import InvalidState, LostAck, Phantom, Resurrected, TornRecord, Violation

SLACK_S: Final = 0.001
_STOPPED: Final = ("FAILED", "DEAD")


def difference(state: State, rows: Rows, ids: dict[str, str]) -> Violation | None:
    """Return the first difference between state and rows; new ids are added to ``ids``."""
    by_id = {row["id"]: row for row in rows.triggers}
    unknown = {row_id: by_id[row_id] for row_id in by_id if row_id not in ids.values()}
    for name, trigger in state.triggers.items():
        if name not in ids:
            fresh = [each for each, row in unknown.items() if _may_be(trigger, row)]
            if fresh:
                ids[name] = fresh[0]
                del unknown[fresh[0]]
        row = by_id.get(ids.get(name, ""))
        if row is None:
            return LostAck("a trigger is gone", name=name, expected=trigger)
        violation = _trigger_difference(name, trigger, row)
        if violation is not None:
            return violation
    if len(by_id) > len(state.triggers):
        names = {ids[name] for name in state.triggers}
        return _surplus(state, [row for each, row in by_id.items() if each not in names])
    return (
        _schedules_difference(state, rows)
        or _task_difference(state, rows)
        or _key_difference(state, rows, ids)
    )


def is_torn(candidates: Sequence[State], rows: Rows, ids: Mapping[str, str]) -> bool:
    """Return whether each trigger, schedule and task by itself equals that of some candidate."""
    by_id = {row["id"]: row for row in rows.triggers}
    for name in {name for each in candidates for name in each.triggers}:
        row = by_id.get(ids.get(name, ""))
        if not any(_is_trigger(name, each.triggers.get(name), row) for each in candidates):
            return False
    for schedule_id in {schedule_id for each in candidates for schedule_id in each.schedules}:
        expected = [each.schedules.get(schedule_id) for each in candidates]
        if not any(_is_schedule(schedule_id, each, rows) for each in expected):
            return False
    for task_id in {task_id for each in candidates for task_id in each.tasks}:
        found = rows.tasks.get(task_id, {})
        shown = found.get("status"), found.get("last_seq")
        tasks = [each.tasks.get(task_id) for each in candidates]
        if shown not in [(each and each.status, each and len(each.events)) for each in tasks]:
            return False
    return True


def _is_trigger(name: str, trigger: ExpectedTrigger | None, row: Row | None) -> bool:
    if trigger is None or row is None:
        # A new one has no known id yet.
        return row is None
    return _trigger_difference(name, trigger, row) is None


def _is_schedule(schedule_id: str, schedule: ExpectedSchedule | None, rows: Rows) -> bool:
    row = rows.schedules.get(schedule_id)
    if schedule is None or row is None:
        return schedule is None and row is None
    return _schedule_difference(schedule_id, schedule, row) is None


def _surplus(state: State, rows: list[Row]) -> Violation:
    keys = {trigger.key for trigger in state.triggers.values()} | set(state.keys)
    for row in rows:
        if row["dedup_key"] in keys - {None}:
            return RepeatedTrigger("a trigger was emitted again under its key", actual=row)
    return Phantom("a trigger exists that nothing has emitted", actual=rows)


def _may_be(trigger: ExpectedTrigger, row: Row) -> bool:
    return (
        (trigger.key, trigger.session) == (row["dedup_key"], row["session_id"])
        and trigger.fire_at <= row["fire_at"] <= trigger.fire_at + trigger.spread_s
        and trigger.payload in (None, row["payload_json"])
    )


def _trigger_difference(name: str, trigger: ExpectedTrigger, row: Row) -> Violation | None:
    evidence = {"name": name, "expected": trigger, "actual": row}
    if not trigger.fire_at <= row["fire_at"] <= trigger.fire_at + trigger.spread_s:
        return MovedTime("the time of a trigger has changed", **evidence)
    if trigger.status != row["status"]:
        return _status_difference(trigger, row, evidence)
    if (trigger.attempts, trigger.fence) != (row["attempts"], row["fence"]):
        return UncountedAttempt("attempts or claims are counted wrongly", **evidence)
    if trigger.status == "PENDING":
        low, high = trigger.pause or (0.0, 0.0)
        not_before = row["not_before"] or 0.0
        if not low - SLACK_S <= not_before <= high + SLACK_S:
            return MovedTime("a trigger has another pause than expected", **evidence)
        if row["due_at"] != max(row["fire_at"], not_before):
            return MovedTime("a trigger has another due time than expected", **evidence)
    if trigger.payload not in (None, row["payload_json"]):
        return TornRecord("a trigger has another payload", **evidence)
    expected = (
        trigger.session, trigger.resolution, trigger.missed, trigger.key, trigger.source,
        trigger.priority, trigger.description, trigger.routed,
    )  # fmt: skip
    if expected != (
        row["session_id"], row["resolution"], row["missed"], row["dedup_key"], row["source"],
        row["priority"], row["description"], bool(row["routed"]),
    ):  # fmt: skip
        return InvalidState("a column of a trigger has another value than expected", **evidence)
    return None


def _status_difference(
    trigger: ExpectedTrigger, row: Row, evidence: Mapping[str, object]
) -> Violation:
    actual = row["status"]
    if trigger.status in _STOPPED and actual in OPEN:
        return EndlessRetry("a trigger that has failed too often is run again", **evidence)
    if trigger.status == "DONE":
        return Resurrected("a settled trigger is back", **evidence)
    if actual == "DONE":
        return LostAck("a trigger counts as settled that was not handled", **evidence)
    return InvalidState("a trigger has another status", **evidence)


def _schedules_difference(state: State, rows: Rows) -> Violation | None:
    for schedule_id, schedule in state.schedules.items():
        row = rows.schedules.get(schedule_id)
        if row is None:
            return LostAck("a schedule is gone", schedule_id=schedule_id, expected=schedule)
        violation = _schedule_difference(schedule_id, schedule, row)
        if violation is not None:
            return violation
    if set(rows.schedules) > set(state.schedules):
        return Phantom("a schedule exists that was not created", actual=rows.schedules)
    return None


def _schedule_difference(
    schedule_id: str, schedule: ExpectedSchedule, row: Row
) -> Violation | None:
    evidence = {"schedule_id": schedule_id, "expected": schedule, "actual": row}
    if (schedule.upcoming, schedule.last) != (row["next_fire_at"], row["last_nominal"]):
        return WrongSchedule("a schedule waits for a wrong occurrence", **evidence)
    if (schedule.is_paused, schedule.ended_at is not None) != (
        bool(row["paused"]), row["ended_at"] is not None,
    ):  # fmt: skip
        return WrongSchedule("a schedule is wrongly paused or ended, or not", **evidence)
    expected = (
        *schedule.definition, schedule.session, SCHEDULE_PRIORITY, schedule.description,
        schedule.payload, schedule.catch_up, schedule.dead_in_row,
    )  # fmt: skip
    if expected != (
        row["kind"], row["spec"], row["zone"], row["session_id"], row["priority"],
        row["description"], row["payload_json"], row["catch_up"], row["dead_in_row"],
    ):  # fmt: skip
        return WrongSchedule("a column of a schedule has another value than expected", **evidence)
    return None


def _task_difference(state: State, rows: Rows) -> Violation | None:
    for task_id, task in state.tasks.items():
        row = rows.tasks.get(task_id)
        evidence = {"task_id": task_id, "expected": task, "actual": row}
        if row is None:
            return LostAck("a task is gone", **evidence)
        if (row["session_id"], row["status"], row["todos_json"], row["last_seq"]) != (
            task.session, task.status, task.todos, len(task.events),
        ):  # fmt: skip
            return TornRecord("a task has another state than expected", **evidence)
        events = tuple(rows.events.get(task_id, ()))
        if events != task.events:
            return TornRecord("a task has other events", **evidence, events=events)
    if set(rows.tasks) | set(rows.events) > set(state.tasks):
        return Phantom("a task exists that was never begun", actual=rows.tasks)
    for key, arguments in state.intents.items():
        row = rows.activities.get(key)
        if row is None or row["arguments_json"] != arguments:
            return LostAck("an activity is gone, or another one", key=key, actual=row)
    if set(rows.activities) > set(state.intents):
        return Phantom("an activity exists that nothing has intended", actual=rows.activities)
    return None


def _key_difference(state: State, rows: Rows, ids: Mapping[str, str]) -> Violation | None:
    """Compare the keys whose scope does not end with time, and the holders of the others."""
    for key, expected in state.keys.items():
        holder = state.triggers.get(expected.holder)
        evidence = {"key": key, "expected": expected, "actual": rows.keys.get(key)}
        is_closed = holder is None or holder.status not in OPEN
        if key not in rows.keys:
            if expected.scope == "forever" or (expected.scope == "active" and not is_closed):
                return FreedKey("a key is free that is taken", **evidence)
        elif holder is not None and rows.keys[key] != ids[expected.holder]:
            return InvalidState("a key is held by another trigger", **evidence)
    if not set(rows.keys) <= set(state.keys):
        return Phantom("a key is taken without a holder", actual=set(rows.keys) - set(state.keys))
    return None
