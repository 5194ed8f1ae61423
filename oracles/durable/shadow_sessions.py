"""The end of a session: all its open work ends, except routed triggers, which are routed again."""

from __future__ import annotations

from dataclasses import replace

from oracles.durable.shadow_schedules import deleted
from oracles.durable.shadow_state import OPEN, State

_UNFINISHED = ("ACTIVE", "WAITING", "BLOCKED")


def session_ended(state: State, session: str, now: float) -> State:
    """End the schedules, triggers and tasks of a session.

    Its reminders are dropped, triggers routed to it are routed again, all others are FAILED.
    """
    for schedule_id, schedule in state.schedules.items():
        if schedule.session == session and schedule.ended_at is None:
            state = deleted(state, schedule_id, now)
    for name, trigger in state.triggers.items():
        if trigger.session != session or trigger.status not in OPEN:
            continue
        if trigger.routed:
            again = replace(trigger, status="PENDING", session=None, routed=False, attempts=0)
            state = state.with_trigger(name, again)
        elif (trigger.key or "").startswith("reminder:"):
            state = state.settled(name, "superseded", now)
        else:
            state = state.stopped(name, "FAILED", now)
    for task_id, task in state.tasks.items():
        if task.session == session and task.status in _UNFINISHED:
            cancelled = replace(task, status="CANCELLED", ended_at=now)
            state = state.with_task(task_id, cancelled)
    return state
