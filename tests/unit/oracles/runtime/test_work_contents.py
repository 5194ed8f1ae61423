"""Rows of ``state.db`` with other contents than their lines."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from oracles.durable.rows import Rows
from oracles.runtime.shadow_work import ShadowWork
from oracles.runtime.violations import TornLine
from oracles.runtime.work_laws import check_lines
from oracles.violation import InvalidState, LostAck, Phantom, Violation
from tests.unit.oracles.runtime.story import NOW_NS, Data, Story, hexed
from tests.unit.oracles.runtime.team import team

BOSS = hexed("boss")
NOW_S = NOW_NS / 10**9
REMINDER: Data = {"reminder_id": "r2", "due_ns": NOW_NS + 1, "payload": [1]}
EMITTED: Data = {
    "trigger_id": "t9", "source": "MEMORY", "payload": {"a": 1}, "description": "about it",
    "fire_at": NOW_S, "key": "memory:x:1", "priority": None,
}  # fmt: skip
SCHEDULED: Data = {
    "schedule_id": "s1", "kind": "every", "spec": "60", "zone": "UTC", "payload": {"b": 2},
    "description": "about that", "priority": None, "catch_up": "all",
}  # fmt: skip
ACTIVITY: Data = {"key": "key-1", "action": "mail", "arguments": {"to": "b"}, "task_id": "task-1"}
BEGUN: Data = {
    "task_id": "task-1", "last_seq": 0, "status": "ACTIVE", "todos": ["a"],
    "events": [{"event": "begin", "data": None}],
}  # fmt: skip
STEP: Data = {
    "task_id": "task-1", "last_seq": 1, "status": "WAITING", "todos": ["b"],
    "events": [{"event": "step", "data": 1}, {"event": "step", "data": 2}],
}  # fmt: skip


def _story() -> Story:
    story = team()
    story.turn(
        "boss", "t4", "r1", reminders=[REMINDER], emitted=[EMITTED], scheduled=[SCHEDULED],
        activities=[ACTIVITY], tasks=[BEGUN],
    )  # fmt: skip
    story.send("m9", "boss", "go on")
    story.turn("boss", "t5", "m9", tasks=[STEP])
    return story


def _rows() -> Rows:
    """Return the rows that these lines determine."""
    reminder = {
        "id": "r2", "source": "SCHEDULED", "dedup_key": "reminder:r2", "session_id": BOSS,
        "fire_at": NOW_S + 1e-6, "priority": 20, "description": None, "payload_json": "[1]",
        "status": "PENDING", "resolution": None,
    }  # fmt: skip
    emitted = {
        "id": "t9", "source": "MEMORY", "dedup_key": "memory:x:1", "session_id": BOSS,
        "fire_at": NOW_S, "priority": 50, "description": "about it", "payload_json": '{"a":1}',
        "status": "PENDING", "resolution": None,
    }  # fmt: skip
    occurrence = {
        "id": "t10", "source": "SCHEDULED", "dedup_key": "scheduled:s1:60", "session_id": BOSS,
        "fire_at": 60.0, "priority": 30, "description": "about that", "payload_json": '{"b":2}',
        "status": "PENDING", "resolution": None,
    }  # fmt: skip
    schedule = {
        "schedule_id": "s1", "kind": "every", "spec": "60", "zone": "UTC", "session_id": BOSS,
        "priority": 30, "description": "about that", "payload_json": '{"b":2}', "catch_up": "all",
        "ended_at": None,
    }  # fmt: skip
    task = {
        "task_id": "task-1", "session_id": BOSS, "status": "WAITING", "todos_json": '["b"]',
        "last_seq": 3,
    }  # fmt: skip
    activity = {
        "idem_key": "key-1", "action": "mail", "arguments_json": '{"to":"b"}', "session_id": BOSS,
        "task_id": "task-1", "status": "INTENT",
    }  # fmt: skip
    return Rows(
        [reminder, emitted, occurrence], {}, {"s1": schedule}, {"task-1": task},
        {"task-1": [("begin", "null"), ("step", "1"), ("step", "2")]}, {"key-1": activity},
        applied={BOSS: 1_000},
    )  # fmt: skip


def _check(rows: Rows) -> None:
    check_lines(_story().snapshot(), rows, ("r1",))


def test_the_rows_of_the_lines_are_right() -> None:
    _check(_rows())


def test_settled_rows_have_no_body() -> None:
    rows: Any = _rows()
    for row in rows.triggers:
        row.update(status="DONE", description=None, payload_json="null")
    rows.schedules["s1"].update(ended_at=NOW_S, description=None, payload_json="null")
    _check(rows)


def test_a_trigger_and_a_schedule_have_the_priority_of_their_lines() -> None:
    story, rows = team(), _rows()
    story.turn(
        "boss", "t4", "r1", emitted=[{**EMITTED, "priority": 51}],
        scheduled=[{**SCHEDULED, "priority": 21}],
    )  # fmt: skip
    wrong: Any = Rows(rows.triggers[1:2], {}, rows.schedules, {}, {}, {}, applied={BOSS: 1_000})
    with pytest.raises(InvalidState, match="a trigger differs from its line"):
        check_lines(story.snapshot(), wrong, ("r1",))
    wrong.triggers[0]["priority"] = 51
    with pytest.raises(InvalidState, match="a schedule differs from its line"):
        check_lines(story.snapshot(), wrong, ("r1",))
    wrong.schedules["s1"]["priority"] = 21
    check_lines(story.snapshot(), wrong, ("r1",))


OWN = "activity:operator:1"


@pytest.mark.parametrize(
    ("changes", "violation"),
    [
        ({}, None), ({"action": "pay"}, InvalidState), ({"arguments_json": "{}"}, InvalidState),
        ({"task_id": "task-1"}, InvalidState), ({"idem_key": "activity:operator:2"}, LostAck),
    ],
)  # fmt: skip
def test_an_activity_of_the_operator_is_in_the_ledger_as_it_was_asked_for(
    changes: Data, violation: type[Violation] | None
) -> None:
    work = ShadowWork()
    work.ask(OWN, "mail", {"to": "b"})
    work.acknowledge_activity(OWN, "DONE")
    row: Data = {
        "idem_key": OWN, "action": "mail", "arguments_json": '{"to":"b"}', "session_id": None,
        "task_id": None, "status": "DONE", "decided_by": None, "attempts": 1,
    } | changes  # fmt: skip
    rows = Rows([], {}, {}, {}, {}, {row["idem_key"]: row}, applied={})
    with nullcontext() if violation is None else pytest.raises(violation):
        work.check(team().snapshot(), rows, NOW_NS)


def test_an_activity_of_nothing_is_reported() -> None:
    row = {"idem_key": OWN, "session_id": None, "status": "DONE", "decided_by": None}
    rows = Rows([], {}, {}, {}, {}, {OWN: row}, applied={})
    with pytest.raises(Phantom, match="an activity exists that nothing has asked for"):
        ShadowWork().check(team().snapshot(), rows, NOW_NS)


def _trigger(number: int, **values: object) -> Callable[[Any], object]:
    return lambda rows: rows.triggers[number].update(values)


def _schedule(**values: object) -> Callable[[Any], object]:
    return lambda rows: rows.schedules["s1"].update(values)


def _activity(**values: object) -> Callable[[Any], object]:
    return lambda rows: rows.activities["key-1"].update(values)


def _task(**values: object) -> Callable[[Any], object]:
    return lambda rows: rows.tasks["task-1"].update(values)


def _events(*events: tuple[str, str]) -> Callable[[Any], object]:
    return lambda rows: rows.events.update({"task-1": list(events)})


WRONG: dict[str, tuple[type[Violation], Callable[[Any], object]]] = {
    "reminder, source": (InvalidState, _trigger(0, source="IMMEDIATE")),
    "reminder, session": (InvalidState, _trigger(0, session_id=hexed("leaf"))),
    "reminder, key": (InvalidState, _trigger(0, dedup_key=None)),
    "reminder, priority": (InvalidState, _trigger(0, priority=30)),
    "reminder, description": (InvalidState, _trigger(0, description="about it")),
    "reminder, payload": (InvalidState, _trigger(0, payload_json="[2]")),
    "reminder, early": (InvalidState, _trigger(0, fire_at=NOW_S)),
    "reminder, late": (InvalidState, _trigger(0, fire_at=NOW_S + 1e-5)),
    "trigger, source": (InvalidState, _trigger(1, source="IMMEDIATE")),
    "trigger, session": (InvalidState, _trigger(1, session_id=None)),
    "trigger, key": (InvalidState, _trigger(1, dedup_key="memory:x:2")),
    "trigger, priority": (InvalidState, _trigger(1, priority=51)),
    "trigger, description": (InvalidState, _trigger(1, description=None)),
    "trigger, payload": (InvalidState, _trigger(1, payload_json="{}")),
    "trigger, time": (InvalidState, _trigger(1, fire_at=NOW_S + 1)),
    "trigger, body of a settled one": (InvalidState, _trigger(1, status="DONE")),
    "occurrence, source": (InvalidState, _trigger(2, source="IMMEDIATE")),
    "occurrence, session": (InvalidState, _trigger(2, session_id=None)),
    "occurrence, priority": (InvalidState, _trigger(2, priority=20)),
    "occurrence, description": (InvalidState, _trigger(2, description=None)),
    "occurrence, payload": (InvalidState, _trigger(2, payload_json="{}")),
    "schedule, kind": (InvalidState, _schedule(kind="cron")),
    "schedule, specification": (InvalidState, _schedule(spec="61")),
    "schedule, zone": (InvalidState, _schedule(zone="Asia/Tokyo")),
    "schedule, session": (InvalidState, _schedule(session_id=None)),
    "schedule, priority": (InvalidState, _schedule(priority=31)),
    "schedule, description": (InvalidState, _schedule(description=None)),
    "schedule, payload": (InvalidState, _schedule(payload_json="{}")),
    "schedule, catch_up": (InvalidState, _schedule(catch_up="latest")),
    "schedule, body of an ended one": (InvalidState, _schedule(ended_at=NOW_S)),
    "activity, action": (InvalidState, _activity(action="pay")),
    "activity, arguments": (InvalidState, _activity(arguments_json="{}")),
    "activity, task": (InvalidState, _activity(task_id=None)),
    "task, todos": (TornLine, _task(todos_json='["a"]')),
    "task, number": (TornLine, _task(last_seq=2)),
    "task, first event": (TornLine, _events(("end", "null"), ("step", "1"), ("step", "2"))),
    "task, data of an event": (TornLine, _events(("begin", "null"), ("step", "1"), ("step", "3"))),
    "task, lost event": (TornLine, _events(("begin", "null"), ("step", "1"))),
    "task, further event": (
        TornLine, _events(("begin", "null"), ("step", "1"), ("step", "2"), ("step", "3")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_other_contents_are_reported(wrong: str) -> None:
    violation, change = WRONG[wrong]
    rows = _rows()
    change(rows)
    with pytest.raises(violation):
        _check(rows)
