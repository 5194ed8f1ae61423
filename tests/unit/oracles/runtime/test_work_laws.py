"""The laws of ``state.db``, compared with the lines whose outboxes it has applied."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import product
from typing import Any

import pytest

from oracles.durable.rows import Rows
from oracles.runtime.shadow_triggers import ShadowTriggers
from oracles.runtime.shadow_work import ShadowWork
from oracles.runtime.violations import LostReport, TornLine
from oracles.runtime.work_laws import check_lines, check_recovered, check_reports
from oracles.violation import InvalidState, LostAck, Phantom, Violation
from tests.unit.oracles.runtime.story import NOW_NS, Data, Story, hexed, message
from tests.unit.oracles.runtime.team import team

TASK = "task-1"
_MAIL: Data = {
    "action": "mail", "arguments_json": "{}", "session_id": hexed("boss"), "task_id": None,
    "status": "DONE", "attempts": 1, "provider_dedup": 1,
}  # fmt: skip
ALL = 1_000
"""A number that no line of the story has."""


def _check(trigger_status: str, resolution: str | None) -> None:
    """Check a BLOCKED task of the boss, whose trigger to resume it has this status."""
    story = team()
    begun = {"task_id": TASK, "last_seq": 0, "status": "ACTIVE", "todos": ["a"]}
    begun["events"] = [{"event": "begin", "data": None}]
    calls = [("begin_task", {"todos": ["a"]}, {"task_id": TASK})]
    story.turn("boss", "t4", "r1", calls=calls, tasks=[begun])
    trigger = {
        "id": "trigger-1", "dedup_key": f"resume:{TASK}", "session_id": hexed("boss"),
        "status": trigger_status, "resolution": resolution,
    }  # fmt: skip
    task = {
        "task_id": TASK, "session_id": hexed("boss"), "status": "BLOCKED", "todos_json": '["a"]',
        "last_seq": 1,
    }  # fmt: skip
    rows = Rows(
        [trigger], {}, {}, {TASK: task}, {TASK: [("begin", "null")]}, {},
        applied={hexed("boss"): ALL},
    )  # fmt: skip
    snapshot, triggers = story.snapshot(), ShadowTriggers()
    triggers.check(snapshot, rows, NOW_NS)
    check_lines(snapshot, rows, ("r1",), triggers.stopped_keys)


@pytest.mark.parametrize(
    ("trigger_status", "resolution"), [("DEAD", None), ("FAILED", None), ("DONE", "discarded")]
)
def test_a_task_is_blocked_if_its_trigger_has_stopped(
    trigger_status: str, resolution: str | None
) -> None:
    _check(trigger_status, resolution)


@pytest.mark.parametrize(
    ("trigger_status", "resolution"),
    [("PENDING", None), ("PENDING", "retried"), ("DONE", "handled")],
)
def test_a_task_is_not_blocked_without_that(trigger_status: str, resolution: str | None) -> None:
    with pytest.raises(InvalidState, match="a task has another status"):
        _check(trigger_status, resolution)


def _check_removed(outcome: dict[str, object] | None) -> None:
    """Check an activity of the boss that the ledger lacks; its log has the outcome."""
    story = team()
    activity: Data = {"key": "key-1", "action": "mail", "arguments": {}, "task_id": None}
    calls = [("perform", {"action": "mail", "arguments": {}}, {"activity_id": "key-1"})]
    story.turn("boss", "t4", "r1", calls=calls, activities=[activity])
    if outcome is not None:
        report = message("key-1.result", "RUNTIME", hexed("a-boss"), "activity", outcome)
        story.add("boss", "message.enqueued", **report)
    rows = Rows([], {}, {}, {}, {}, {}, applied={hexed("boss"): ALL})
    check_lines(story.snapshot(), rows, ("r1",))


@pytest.mark.parametrize(
    ("status", "decided_by"), [("DONE", None), ("DONE", "Ada"), ("FAILED", "Ada")]
)
def test_a_settled_activity_may_be_removed(status: str, decided_by: str | None) -> None:
    _check_removed({"status": status, "decided_by": decided_by})


@pytest.mark.parametrize("status", [None, "FAILED", "UNCERTAIN"])
def test_an_activity_without_such_an_outcome_is_never_removed(status: str | None) -> None:
    with pytest.raises(LostAck, match="not in the ledger"):
        _check_removed(None if status is None else {"status": status, "decided_by": None})


def _check_reminder(
    *, is_cancelled: bool, is_applied: bool, status: str | None = None, is_reported: bool = False
) -> None:
    """Check a reminder of the boss; a later turn may have cancelled it.

    ``state.db`` lacks it, or it has a status there; it may have stopped before it was cancelled.
    """
    story = team()
    calls: list[Any] = [("remind_me", {"delay_ns": 0, "payload": 0}, {"reminder_id": "r2"})]
    reminder: Data = {"reminder_id": "r2", "due_ns": NOW_NS, "payload": 0}
    story.turn("boss", "t4", "r1", calls=calls, reminders=[reminder])
    applied = ALL
    if is_cancelled:
        story.send("m9", "boss", "cancel it")
        calls = [("cancel_reminder", {"reminder_id": "r2"}, {})]
        story.turn("boss", "t5", "m9", calls=calls, cancelled=["r2"])
        snapshot = story.snapshot()
        turns = snapshot.agents[hexed("a-boss")].turns
        applied = turns["t5" if is_applied else "t4"].seq
    if is_reported:
        report = message("r2.dead", "RUNTIME", "USER", "system", {"trigger_id": "r2"})
        story.add("user", "message.enqueued", **report)
    row = {
        "id": "r2", "source": "SCHEDULED", "dedup_key": "reminder:r2", "description": None,
        "session_id": hexed("boss"), "payload_json": "null" if status == "DONE" else "0",
        "fire_at": NOW_NS / 1e9, "priority": 20, "status": status, "resolution": None,
    }  # fmt: skip
    triggers = [] if status is None else [row]
    rows = Rows(triggers, {}, {}, {}, {}, {}, applied={hexed("boss"): applied})
    check_lines(story.snapshot(), rows, ("r1",))
    check_reports(story.snapshot(), rows)


def test_a_reminder_that_a_line_has_cancelled_may_be_removed() -> None:
    _check_reminder(is_cancelled=True, is_applied=True)


@pytest.mark.parametrize("status", ["PENDING", "CLAIMED", "FAILED", "DEAD"])
def test_a_reminder_that_a_line_has_cancelled_is_settled(status: str) -> None:
    with pytest.raises(TornLine, match="may still come"):
        _check_reminder(is_cancelled=True, is_applied=True, status=status, is_reported=True)


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_reminder_that_has_stopped_is_reported_also_if_it_is_cancelled_then(
    is_cancelled: bool,
) -> None:
    with nullcontext() if is_cancelled else pytest.raises(Phantom, match="not stopped"):
        _check_reminder(is_cancelled=is_cancelled, is_applied=True, status="DONE", is_reported=True)


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_another_reminder_is_not_removed(is_cancelled: bool) -> None:
    with pytest.raises(LostAck, match="a trigger of a line is gone"):
        _check_reminder(is_cancelled=is_cancelled, is_applied=False)


@pytest.mark.parametrize(("has_ended", "is_collected"), [*product([True, False], repeat=2)])
def test_the_rows_of_a_collected_agent_are_removed(has_ended: bool, is_collected: bool) -> None:
    story = team()
    activity: Data = {"key": "key-1", "action": "mail", "arguments": {}, "task_id": None}
    story.turn("boss", "t4", "r1", activities=[activity])
    if has_ended:
        story.terminate("boss")
    rows = Rows([], {}, {}, {}, {}, {"key-1": _MAIL}, ended={hexed("boss")} if is_collected else ())
    expected = "that has not ended" if is_collected else "in the ledger before its line"
    is_right = has_ended and is_collected
    with nullcontext() if is_right else pytest.raises(Violation, match=expected):
        check_lines(story.snapshot(), rows, ("r1",))
    unsettled = "that has not ended" if is_collected else "has not applied the outbox"
    with nullcontext() if is_right else pytest.raises(Violation, match=unsettled):
        check_recovered(story.snapshot(), rows)


@pytest.mark.parametrize("is_reported", [True, False])
def test_a_trigger_that_a_recovery_has_stopped_is_reported_to_user(is_reported: bool) -> None:
    story = Story()
    story.root("boss")
    stopped = {
        "id": "trigger-1", "source": "IMMEDIATE", "dedup_key": None, "session_id": hexed("boss"),
        "description": None, "payload_json": "0", "fire_at": 0.0, "status": "DEAD",
        "resolution": None,
    }  # fmt: skip
    if is_reported:
        report = message("trigger-1.dead", "RUNTIME", "USER", "system", {"trigger_id": "trigger-1"})
        story.add("user", "message.enqueued", **report)
    rows = Rows([stopped], {}, {}, {}, {}, {})
    work = ShadowWork()
    work.triggers.begin("trigger-1", hexed("boss"), 0, 0.0)
    if is_reported:
        work.settle(story.snapshot(), rows, NOW_NS)
    else:
        with pytest.raises(LostReport, match="a trigger has stopped"):
            work.settle(story.snapshot(), rows, NOW_NS)
