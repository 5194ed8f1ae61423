"""Rows that are exactly as a state of the shadow wants them."""

from __future__ import annotations

from typing import Any

from oracles.durable.rows import Row, Rows
from oracles.durable.shadow_state import SCHEDULE_PRIORITY, ExpectedTrigger, State


def rows_of(state: State, activities: dict[str, Row] | None = None) -> Rows:
    """Return the rows of a state; the id of a trigger is its name in capitals."""
    intents = {
        key: {"idem_key": key, "arguments_json": arguments, "status": "INTENT"}
        for key, arguments in state.intents.items()
    }
    return Rows(
        [_trigger(name, trigger) for name, trigger in state.triggers.items()],
        {key: held.holder.upper() for key, held in state.keys.items()},
        {
            schedule_id: {
                "kind": each.definition[0], "spec": each.definition[1],
                "zone": each.definition[2], "session_id": each.session,
                "priority": SCHEDULE_PRIORITY, "description": each.description,
                "payload_json": each.payload, "catch_up": each.catch_up,
                "next_fire_at": each.upcoming, "last_nominal": each.last,
                "paused": int(each.is_paused), "dead_in_row": each.dead_in_row,
                "ended_at": each.ended_at,
            }
            for schedule_id, each in state.schedules.items()
        },
        {
            task_id: {
                "session_id": each.session, "status": each.status, "todos_json": each.todos,
                "last_seq": len(each.events),
            }
            for task_id, each in state.tasks.items()
        },
        {task_id: each.events for task_id, each in state.tasks.items()},
        intents if activities is None else activities,
    )  # fmt: skip


def _trigger(name: str, trigger: ExpectedTrigger) -> dict[str, Any]:
    not_before = None if trigger.pause is None else trigger.pause[0]
    return {
        "id": name.upper(), "source": trigger.source, "dedup_key": trigger.key,
        "session_id": trigger.session, "fire_at": trigger.fire_at, "not_before": not_before,
        "due_at": max(trigger.fire_at, not_before or 0.0), "priority": trigger.priority,
        "description": trigger.description,
        "payload_json": trigger.payload, "status": trigger.status, "attempts": trigger.attempts,
        "fence": trigger.fence, "missed": trigger.missed, "routed": int(trigger.routed),
        "resolution": trigger.resolution,
    }  # fmt: skip
