"""The law of effects for durable work: a line has exactly the work of its tool calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from oracles.runtime.violations import EffectsMismatch
from tests.unit.oracles.runtime.story import NOW_NS, Story
from tests.unit.oracles.runtime.team import team

TASK, TRIGGER, SCHEDULE = "task-1", "trigger-1", "schedule-1"
CALLS: list[Any] = [
    ("perform", {"action": "mail", "arguments": {"to": "Anna"}}, {"activity_id": "a:1"}),
    ("perform", {"action": "fly"}, {"error": "not registered"}),
    ("begin_task", {"todos": ["a"]}, {"task_id": TASK}),
    ("checkpoint", {"task_id": TASK, "event": "step", "status": "WAITING"}, {"last_seq": 2}),
    ("emit", {"payload": 1, "delay_ns": 1000}, {"trigger_id": TRIGGER}),
    ("schedule", {"kind": "every", "spec": "60"}, {"schedule_id": SCHEDULE}),
    ("unschedule", {"schedule_id": SCHEDULE}, {}),
    ("list_tasks", {}, {"tasks": []}),
]  # fmt: skip


def _event(name: str) -> dict[str, Any]:
    return {"event": name, "data": None}


def _task(last_seq: int, status: str, *events: str) -> dict[str, Any]:
    named = [_event(each) for each in events]
    return {
        "task_id": TASK, "last_seq": last_seq, "status": status, "todos": ["a"], "events": named,
    }  # fmt: skip


def working() -> tuple[Story, dict[str, Any]]:
    """Return a story in which the boss works durably, and the members of its line."""
    story = team()
    emitted = {
        "trigger_id": TRIGGER, "source": "IMMEDIATE", "payload": 1, "description": None,
        "fire_at": NOW_NS / 1e9, "key": None, "priority": None,
    }  # fmt: skip
    scheduled = {
        "schedule_id": SCHEDULE, "kind": "every", "spec": "60", "zone": "UTC", "payload": None,
        "description": None, "priority": None, "catch_up": "latest",
    }  # fmt: skip
    story.turn(
        "boss", "t4", "r1", calls=CALLS, emitted=[emitted], scheduled=[scheduled],
        unscheduled=[SCHEDULE], tasks=[_task(0, "WAITING", "begin", "step")],
        activities=[
            {"key": "a:1", "action": "mail", "arguments": {"to": "Anna"}, "task_id": None}
        ],
    )  # fmt: skip
    return story, story.at("boss", "turn.complete", 2)


def test_a_line_with_the_work_of_its_calls_is_right() -> None:
    story, _ = working()
    story.shadow().check(story.snapshot())


def test_a_checkpoint_follows_the_events_of_earlier_turns() -> None:
    story, _ = working()
    story.send("m9", "boss", 0)
    call = ("checkpoint", {"task_id": TASK, "event": "end", "status": "DONE"}, {"last_seq": 3})
    story.turn("boss", "t5", "m9", calls=[call], tasks=[_task(2, "DONE", "end")])
    story.shadow().check(story.snapshot())
    story.at("boss", "turn.complete", 3)["tasks"][0]["last_seq"] = 1
    shadow = story.shadow()
    with pytest.raises(EffectsMismatch):
        shadow.check(story.snapshot())


CHANGES: dict[str, Callable[[Any], Any]] = {
    "no activity": lambda line: line["activities"].clear(),
    "other arguments": lambda line: line["activities"][0].update(arguments={"to": "Eve"}),
    "an event less": lambda line: line["tasks"][0]["events"].pop(),
    "another status": lambda line: line["tasks"][0].update(status="ACTIVE"),
    "another payload": lambda line: line["emitted"][0].update(payload=2),
    "another period": lambda line: line["scheduled"][0].update(spec="61"),
    "no end of a schedule": lambda line: line["unscheduled"].clear(),
    "no trigger": lambda line: line.pop("emitted"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_line_with_other_work_than_its_calls_is_refused(change: Callable[[Any], Any]) -> None:
    story, line = working()
    change(line)
    shadow = story.shadow()
    with pytest.raises(EffectsMismatch):
        shadow.check(story.snapshot())


def test_a_line_with_work_that_nothing_has_called_for_is_refused() -> None:
    story, _ = working()
    story.asked["t4"].calls.clear()
    shadow = story.shadow()
    with pytest.raises(EffectsMismatch):
        shadow.check(story.snapshot())
