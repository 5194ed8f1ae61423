"""The occurrences of schedules, computed from their nominal times alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from oracles.durable.shadow_state import (
    SCHEDULE_PRIORITY,
    ExpectedSchedule,
    ExpectedTrigger,
    State,
)

MOST_MISSED: Final = 1_000
LATE_S: Final = 120


def name_of(schedule_id: str, nominal: int) -> str:
    """Return the name of the trigger of an occurrence."""
    return f"{schedule_id} at {nominal}"


def armed(state: State, schedule_id: str, schedule: ExpectedSchedule, now: float) -> State:
    """Arm a schedule for its next occurrence; without a next occurrence it ends at ``now``."""
    if schedule.upcoming is None:
        return state.with_schedule(schedule_id, ended(schedule, now))
    trigger = ExpectedTrigger(
        schedule.key_of(schedule_id, schedule.upcoming), schedule.session,
        float(schedule.upcoming), SCHEDULE_PRIORITY, schedule.payload,
        description=schedule.description,
    )  # fmt: skip
    name = name_of(schedule_id, schedule.upcoming)
    while name in state.triggers:
        # The same occurrence was superseded before.
        name += " again"
    return state.emitted(name, trigger, 0.0).with_schedule(schedule_id, schedule)


def claimed(state: State, name: str, now: float) -> State:
    """Claim a trigger at ``now``, and emit the occurrence that follows it.

    An occurrence that its schedule skips is settled instead.
    """
    state, missed, is_skipped = _followed(state, name, now)
    return state.settled(name, "skipped", now) if is_skipped else state.claimed(name, missed)


def _followed(state: State, name: str, now: float) -> tuple[State, int, bool]:
    """Return the state after an occurrence, the number of missed ones, and whether it is skipped.

    Nothing changes if the next occurrence was emitted before, or the trigger has no schedule.
    """
    trigger = state.triggers[name]
    nominal = round(trigger.fire_at)
    schedule_id, schedule = state.schedule_of(trigger)
    if schedule is None or (schedule.last is not None and schedule.last >= nominal):
        return state, trigger.missed, False
    assert trigger.key is not None
    if not schedule.is_once:
        # From now on ``last`` refuses the occurrence; nothing else refuses a second one-time run.
        state = state.without_keys(trigger.key)
    is_skipped = schedule.catch_up == "skip" and now - nominal > LATE_S
    missed, last = 0, nominal
    if is_skipped:
        last = max(nominal, schedule.times.last(_before(now - LATE_S)))
    elif schedule.catch_up != "all":
        missed, last = schedule.times.number(nominal, int(now)), schedule.times.last(int(now))
    upcoming = None if schedule.is_once else schedule.times.after(last)
    following = replace(schedule, upcoming=upcoming, last=last)
    state = armed(state, schedule_id, following, now)
    return state, min(missed, MOST_MISSED), is_skipped


def _before(moment: float) -> int:
    """Return the last whole second before a moment."""
    return int(moment) if moment > int(moment) else int(moment) - 1


def changed(
    state: State, schedule_id: str, new: ExpectedSchedule, now: float, moment: float
) -> State:
    """Give a schedule the content of ``new``, also if it is paused, and arm it after ``moment``.

    Its next occurrence is superseded. No occurrence up to its ``last`` is fired again.
    """
    last = state.schedules[schedule_id].last
    state = _disarmed(state, schedule_id, now)
    return _rearmed(state, schedule_id, replace(new, last=last), now, moment)


def paused(state: State, schedule_id: str, now: float) -> State:
    """Pause a schedule: its next occurrence is superseded."""
    schedule = replace(state.schedules[schedule_id], upcoming=None, is_paused=True)
    return _disarmed(state, schedule_id, now).with_schedule(schedule_id, schedule)


def resumed(state: State, schedule_id: str, now: float, moment: float) -> State:
    """Resume a paused schedule with the first occurrence after ``moment``."""
    schedule = replace(state.schedules[schedule_id], is_paused=False, dead_in_row=0)
    return _rearmed(state, schedule_id, schedule, now, moment)


def _disarmed(state: State, schedule_id: str, now: float) -> State:
    """Supersede the next occurrence of a schedule, and free its key; a paused one has none."""
    schedule = state.schedules[schedule_id]
    if schedule.upcoming is None:
        return state
    key = schedule.key_of(schedule_id, schedule.upcoming)
    return state.settled(state.keys[key].holder, "superseded", now).without_keys(key)


def _rearmed(
    state: State, schedule_id: str, schedule: ExpectedSchedule, now: float, moment: float
) -> State:
    """Arm a schedule; one of the kind ``once`` also if its time has passed."""
    after = -1 if schedule.is_once else max(int(moment), schedule.last or 0)
    following = replace(schedule, upcoming=schedule.times.after(after))
    return armed(state, schedule_id, following, now)


def deleted(state: State, schedule_id: str, now: float) -> State:
    """End a schedule: its PENDING triggers are superseded, its keys free."""
    schedule = state.schedules[schedule_id]
    for name, trigger in state.triggers.items():
        if trigger.status == "PENDING" and state.schedule_of(trigger)[0] == schedule_id:
            state = state.settled(name, "superseded", now)
    keys = [key for key in state.keys if _belongs(key, schedule_id)]
    return state.without_keys(*keys).with_schedule(schedule_id, ended(schedule, now))


def ended(schedule: ExpectedSchedule, now: float) -> ExpectedSchedule:
    """Return a schedule at its end, without its body."""
    return replace(schedule, upcoming=None, ended_at=now, payload="null", description=None)


def _belongs(key: str, schedule_id: str) -> bool:
    prefix, *parts = key.split(":")
    return prefix in ("scheduled", "scheduled-once") and parts[0] == schedule_id
