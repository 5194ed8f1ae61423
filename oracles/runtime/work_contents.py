"""The contents of the rows of ``state.db`` that lines determine.

A row is written once from its line (``docs/durable.md``): its definition never changes, and the
events of a task are never rewritten. A body is removed when its row is settled. The operator
changes no definition of an agent's schedule.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from typing import Final

from oracles.durable.rows import Event, Row
from oracles.durable.shadow_state import SCHEDULE_PRIORITY
from oracles.runtime.log_records import (
    ActivityRecord,
    EmittedRecord,
    ReminderRecord,
    ScheduleRecord,
    TaskRecord,
)
from oracles.violation import InvalidState

REMINDER_PRIORITY: Final = 20
SECOND_NS: Final = 1_000_000_000
_ROUNDING_NS: Final = 1_000
"""The most by which a time as REAL seconds is later than its nanoseconds."""

_PRIORITIES: Final = {
    "MESSAGE": 3, "IMMEDIATE": 10, "MEMORY": 50, "PROACTIVE": 50, "RESUME": 5, "LIVING_UI": 30,
    "SKILL_WORKFLOW": 60, "ONBOARDING": 1, "SYSTEM": 1,
}  # fmt: skip
"""The priority of a trigger whose line names none, by its source."""


def check_reminder(session_id: str, reminder: ReminderRecord, row: Row) -> None:
    """Check the trigger of a reminder of the agent with this session."""
    key = f"reminder:{reminder.reminder_id}"
    expected = ("SCHEDULED", session_id, key, REMINDER_PRIORITY, None, reminder.payload)
    _check_trigger(expected, row)
    late_ns = Fraction(row["fire_at"]) * SECOND_NS - reminder.due_ns
    if not 0 <= late_ns <= _ROUNDING_NS:
        raise InvalidState("a reminder has another time than its line", line=reminder, actual=row)


def check_emitted(session_id: str, emitted: EmittedRecord, row: Row) -> None:
    """Check a trigger that the agent with this session has emitted."""
    priority = emitted.priority
    if priority is None:
        priority = _PRIORITIES[emitted.source]
    expected = (
        emitted.source, session_id, emitted.key, priority, emitted.description, emitted.payload,
    )  # fmt: skip
    _check_trigger(expected, row)
    if row["fire_at"] != emitted.fire_at:
        raise InvalidState("a trigger has another time than its line", line=emitted, actual=row)


def _check_trigger(expected: tuple[object, ...], row: Row) -> None:
    body: tuple[object, object] = (row["description"], json.loads(row["payload_json"]))
    definition = row["source"], row["session_id"], row["dedup_key"], row["priority"]
    if row["status"] == "DONE":
        expected = (*expected[:-2], None, None)
    if (*definition, *body) != expected:
        raise InvalidState("a trigger differs from its line", expected=expected, actual=row)


def check_schedule(
    session_id: str, schedule: ScheduleRecord, row: Row, triggers: Iterable[Row]
) -> None:
    """Check a schedule of the agent with this session, and its occurrences in ``triggers``."""
    priority = SCHEDULE_PRIORITY if schedule.priority is None else schedule.priority
    for each in triggers:
        if (each["dedup_key"] or "").startswith(f"scheduled:{schedule.schedule_id}:"):
            _check_trigger(
                (
                    "SCHEDULED", session_id, each["dedup_key"], priority, schedule.description,
                    schedule.payload,
                ),
                each,
            )  # fmt: skip
    body = schedule.description, schedule.payload
    if row["ended_at"] is not None:
        body = None, None
    expected = (
        schedule.kind, schedule.spec, schedule.zone, session_id, priority, schedule.catch_up, *body,
    )  # fmt: skip
    actual = (
        row["kind"], row["spec"], row["zone"], row["session_id"], row["priority"],
        row["catch_up"], row["description"], json.loads(row["payload_json"]),
    )  # fmt: skip
    if actual != expected:
        raise InvalidState("a schedule differs from its line", expected=expected, actual=row)


def check_activity(activity: ActivityRecord, row: Row) -> None:
    """Check the request of an activity."""
    expected = activity.action, activity.arguments, activity.task_id
    if (row["action"], json.loads(row["arguments_json"]), row["task_id"]) != expected:
        raise InvalidState("an activity differs from its request", expected=activity, actual=row)


def is_task_of(lines: Iterable[TaskRecord], row: Row, events: Iterable[Event]) -> bool:
    """Return whether a task has the todos of its last line, and the events of all of them."""
    shown = [{"event": name, "data": json.loads(data)} for name, data in events]
    last_seq, todos = 0, None
    for line in lines:
        last_seq, todos = line.last_seq + len(line.events), line.todos
        if shown[line.last_seq : last_seq] != list(line.events):
            return False
    return (row["last_seq"], len(shown), json.loads(row["todos_json"])) == (
        last_seq, last_seq, todos,
    )  # fmt: skip
