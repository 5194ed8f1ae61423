"""The occurrences of schedules, computed from their periods alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from oracles.durable.shadow_state import ExpectedSchedule, ExpectedTrigger, State

PRIORITY: Final = 30
MOST_MISSED: Final = 1_000


def key_of(schedule_id: str, nominal: int, schedule: ExpectedSchedule) -> str:
    """Return the dedup key of an occurrence."""
    if schedule.period_s is None:
        return f"scheduled-once:{schedule_id}"
    return f"scheduled:{schedule_id}:{nominal}"


def name_of(schedule_id: str, nominal: int) -> str:
    """Return the name of the trigger of an occurrence."""
    return f"{schedule_id} at {nominal}"


def armed(state: State, schedule_id: str, schedule: ExpectedSchedule, payload: str | None) -> State:
    """Let a schedule wait for its upcoming occurrence."""
    assert schedule.upcoming is not None
    trigger = ExpectedTrigger(
        key_of(schedule_id, schedule.upcoming, schedule), schedule.session,
        float(schedule.upcoming), PRIORITY, payload,
    )  # fmt: skip
    name = name_of(schedule_id, schedule.upcoming)
    return state.emitted(name, trigger, 0.0).with_schedule(schedule_id, schedule)


def followed(state: State, name: str, now: float) -> tuple[State, int]:
    """Emit the occurrence after the one that is claimed at ``now``; return what it has missed.

    An occurrence that was followed, and a trigger of no schedule, change nothing.
    """
    trigger = state.triggers[name]
    schedule_id = name.partition(" at ")[0]
    schedule = state.schedules.get(schedule_id)
    nominal = round(trigger.fire_at)
    if schedule is None or schedule.upcoming != nominal:
        return state, trigger.missed
    assert trigger.key is not None
    state = replace(state, keys={k: v for k, v in state.keys.items() if k != trigger.key})
    if schedule.period_s is None:
        ended = replace(schedule, upcoming=None, last=nominal)
        return state.with_schedule(schedule_id, ended), 0
    passed = int(now - nominal) // schedule.period_s
    last = nominal + passed * schedule.period_s
    following = replace(schedule, upcoming=last + schedule.period_s, last=last)
    return armed(state, schedule_id, following, trigger.payload), min(passed, MOST_MISSED)


def deleted(state: State, schedule_id: str, now: float) -> State:
    """End a schedule: its PENDING triggers are superseded, its keys free."""
    for name, trigger in state.triggers.items():
        if trigger.status == "PENDING" and _belongs(trigger.key, schedule_id):
            state = state.settled(name, "superseded", now)
    keys = {key: held for key, held in state.keys.items() if not _belongs(key, schedule_id)}
    ended = replace(state.schedules[schedule_id], upcoming=None)
    return replace(state, keys=keys).with_schedule(schedule_id, ended)


def _belongs(key: str | None, schedule_id: str) -> bool:
    prefix, *parts = (key or "").split(":")
    return prefix in ("scheduled", "scheduled-once") and parts[0] == schedule_id
