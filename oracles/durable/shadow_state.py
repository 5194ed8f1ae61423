"""The expected rows after each transaction, as an immutable value.

A transaction is a function from state to state. So a crash leaves the state before it or the
state after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from types import MappingProxyType
from typing import Final

from oracles.durable.nominal_times import NominalTimes
from oracles.durable.rows import Event

FIRST_PAUSE_S: Final = 30
LONGEST_PAUSE_S: Final = 3_600
WINDOW_S: Final = 7 * 86_400
MOST_DEAD: Final = 5
OPEN: Final = ("PENDING", "CLAIMED")

_SCOPES: Final = {
    "immediate": "window", "memory": "active", "resume": "active", "reminder": "forever",
    "skill": "forever", "scheduled": "forever", "scheduled-once": "forever",
}  # fmt: skip
_SOURCES: Final = {
    "immediate": "IMMEDIATE", "memory": "MEMORY", "resume": "RESUME", "reminder": "SCHEDULED",
    "skill": "SKILL_WORKFLOW", "scheduled": "SCHEDULED", "scheduled-once": "SCHEDULED",
}  # fmt: skip
SCHEDULE_PRIORITY: Final = 30
_REPLACED: Final = ("memory",)


@dataclass(frozen=True, slots=True)
class ExpectedTrigger:
    """The expected row of a trigger.

    ``fire_at`` may be up to ``spread_s`` later; ``pause`` are bounds of ``not_before``, or None.
    ``payload`` is canonical JSON, None if the system makes it.
    """

    key: str | None
    session: str | None
    fire_at: float
    priority: int
    payload: str | None
    spread_s: float = 0.0
    description: str | None = None
    status: str = "PENDING"
    attempts: int = 0
    fence: int = 0
    pause: tuple[float, float] | None = None
    resolution: str | None = None
    missed: int = 0
    routed: bool = False
    settled_at: float = 0.0

    @property
    def source(self) -> str:
        """The source that its key names; a trigger without a key is IMMEDIATE."""
        return _SOURCES[(self.key or "immediate").partition(":")[0]]

    def due_by(self, now: float) -> bool:
        """Whether it is due at ``now``, at every time that ``fire_at`` may have."""
        return self.fire_at + self.spread_s <= now and (self.pause is None or self.pause[1] <= now)


@dataclass(frozen=True, slots=True)
class ExpectedKey:
    """A dedup key and the name of its holder; of scope ``window`` it ends at ``expires_at``."""

    holder: str
    scope: str
    expires_at: float


@dataclass(frozen=True, slots=True)
class ExpectedSchedule:
    """A schedule whose next occurrence is ``upcoming``: None while it is paused, and after its end.

    ``definition`` is its kind, specification and zone; ``payload`` is canonical JSON. Without a
    ``session`` its triggers are routed. No occurrence up to the time ``last`` is fired
    again. ``dead_in_row`` counts successive occurrences that became FAILED or DEAD.
    """

    times: NominalTimes
    session: str | None
    upcoming: int | None
    last: int | None = None
    catch_up: str = "latest"
    is_once: bool = False
    dead_in_row: int = 0
    is_paused: bool = False
    ended_at: float | None = None
    definition: tuple[str, str, str] = ("every", "60", "UTC")
    payload: str = "null"
    description: str | None = None

    def key_of(self, schedule_id: str, nominal: int) -> str:
        """Return the dedup key of an occurrence."""
        if self.is_once:
            return f"scheduled-once:{schedule_id}"
        return f"scheduled:{schedule_id}:{nominal}"


@dataclass(frozen=True, slots=True)
class ExpectedTask:
    """A task; ``todos`` and the data of ``events`` are canonical JSON."""

    session: str
    status: str
    todos: str
    events: tuple[Event, ...]
    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class State:
    """All rows by name; ``intents`` are the keys of activities with their arguments as JSON."""

    triggers: Mapping[str, ExpectedTrigger] = field(default_factory=lambda: MappingProxyType({}))
    keys: Mapping[str, ExpectedKey] = field(default_factory=lambda: MappingProxyType({}))
    schedules: Mapping[str, ExpectedSchedule] = field(default_factory=lambda: MappingProxyType({}))
    tasks: Mapping[str, ExpectedTask] = field(default_factory=lambda: MappingProxyType({}))
    intents: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    # -- triggers ------------------------------------------------------------------------

    def holder(self, key: str | None, now: float) -> str | None:
        """Return the name of the trigger that holds a key, or None."""
        held = None if key is None else self.keys.get(key)
        if held is None:
            return None
        holder = self.triggers.get(held.holder)
        if held.scope == "active" and (holder is None or holder.status not in OPEN):
            return None
        return None if held.scope == "window" and held.expires_at <= now else held.holder

    def open_triggers(self) -> list[ExpectedTrigger]:
        """Return the triggers that are PENDING or CLAIMED."""
        return [each for each in self.triggers.values() if each.status in OPEN]

    def emitted(self, name: str, trigger: ExpectedTrigger, now: float) -> State:
        """Insert a trigger whose key is free."""
        assert name not in self.triggers
        state = self
        if trigger.key is not None:
            prefix, family = trigger.key.split(":")[0], trigger.key.rpartition(":")[0]
            keys = dict(self.keys)
            triggers = dict(self.triggers)
            for other, older in self.triggers.items():
                if (
                    prefix in _REPLACED
                    and older.status == "PENDING"
                    and older.session == trigger.session
                    and (older.key or "").rpartition(":")[0] == family
                ):
                    triggers[other] = _done(older, "superseded", now)
                    assert older.key is not None
                    keys[older.key] = replace(keys[older.key], holder=name)
            keys[trigger.key] = ExpectedKey(name, _SCOPES[prefix], now + WINDOW_S)
            state = replace(self, keys=keys, triggers=triggers)
        return state.with_trigger(name, trigger)

    def claimed(self, name: str, missed: int) -> State:
        """Count a claim."""
        trigger = self.triggers[name]
        return self.with_trigger(
            name,
            replace(
                trigger, status="CLAIMED", attempts=trigger.attempts + 1,
                fence=trigger.fence + 1, missed=missed,
            ),
        )  # fmt: skip

    def settled(self, name: str, resolution: str, now: float) -> State:
        """Make a trigger DONE; one that is DONE stays as it is."""
        trigger = self.triggers[name]
        if trigger.status == "DONE":
            return self
        state = self.with_trigger(name, _done(trigger, resolution, now))
        schedule_id, schedule = state.schedule_of(trigger)
        if resolution == "handled" and schedule is not None:
            return state.with_schedule(schedule_id, replace(schedule, dead_in_row=0))
        return state

    def routed(self, name: str, session: str) -> State:
        """Give a claimed trigger to a session, as if it had not been claimed yet."""
        trigger = self.triggers[name]
        assert trigger.session is None
        given = replace(trigger, status="PENDING", session=session, routed=True, attempts=0)
        return self.with_trigger(name, given)

    def failed(
        self, name: str, before: float, after: float, most_attempts: int, *, retryable: bool
    ) -> State:
        """Give a trigger back between two times, or stop it."""
        trigger = self.triggers[name]
        if not retryable:
            return self.stopped(name, "FAILED", before)
        if trigger.attempts >= most_attempts:
            return self.stopped(name, "DEAD", before)
        least = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (trigger.attempts - 1))
        pause = (before + least, after + least * 1.25)
        return self.with_trigger(name, replace(trigger, status="PENDING", pause=pause))

    def given_back(self, name: str) -> State:
        """Give a trigger back without counting."""
        trigger = self.triggers[name]
        attempts = trigger.attempts - 1
        return self.with_trigger(name, replace(trigger, status="PENDING", attempts=attempts))

    def stopped(self, name: str, status: str, now: float) -> State:
        """Make a trigger FAILED or DEAD; the task that it should resume is BLOCKED.

        The fifth occurrence of a schedule in a row pauses it.
        """
        trigger = self.triggers[name]
        state = self.with_trigger(name, replace(trigger, status=status))
        prefix, _, task_id = (trigger.key or "").partition(":")
        task = self.tasks.get(task_id) if prefix == "resume" else None
        if task is not None and task.status == "ACTIVE":
            return state.with_task(task_id, replace(task, status="BLOCKED"))
        schedule_id, schedule = state.schedule_of(trigger)
        if schedule is None:
            return state
        counted = replace(schedule, dead_in_row=schedule.dead_in_row + 1)
        if counted.dead_in_row < MOST_DEAD or counted.is_paused:
            return state.with_schedule(schedule_id, counted)
        assert counted.upcoming is not None
        key = counted.key_of(schedule_id, counted.upcoming)
        upcoming = state.keys[key].holder
        state = state.settled(upcoming, "superseded", now).without_keys(key)
        return state.with_schedule(schedule_id, replace(counted, upcoming=None, is_paused=True))

    def retried(self, name: str, now: float) -> State:
        """Run a stopped trigger again, as a person decided; it takes its key again if that is free.

        It does not take again the keys of triggers that it had superseded. An occurrence of a
        schedule needs no key, because no time up to ``last`` is fired again.
        """
        trigger = replace(
            self.triggers[name], status="PENDING", attempts=0, pause=None, resolution="retried"
        )
        state = self.with_trigger(name, trigger).without_keys(
            *(
                key
                for key, held in self.keys.items()
                if (held.scope, held.holder) == ("active", name)
            )
        )
        prefix = (trigger.key or "").partition(":")[0]
        is_occurrence = prefix in ("scheduled", "scheduled-once")
        if trigger.key and not is_occurrence and self.holder(trigger.key, now) is None:
            scope = _SCOPES[prefix]
            key = ExpectedKey(name, scope, now + WINDOW_S)
            state = replace(state, keys={**state.keys, trigger.key: key})
        prefix, _, task_id = (trigger.key or "").partition(":")
        task = self.tasks.get(task_id) if prefix == "resume" else None
        if task is not None and task.status == "BLOCKED":
            return state.with_task(task_id, replace(task, status="ACTIVE"))
        return state

    def recovered(self, now: float, most_attempts: int) -> State:
        """Give back the claims of the process that has ended, and shorten pauses to an hour."""
        state = self
        for name, trigger in self.triggers.items():
            if trigger.status == "CLAIMED":
                is_dead = trigger.attempts >= most_attempts
                state = (
                    state.stopped(name, "DEAD", now)
                    if is_dead
                    else state.with_trigger(name, replace(trigger, status="PENDING"))
                )
        for name, trigger in state.triggers.items():
            if trigger.status == "PENDING" and trigger.pause is not None:
                latest = now + LONGEST_PAUSE_S
                low, high = trigger.pause
                pause = (min(low, latest), min(high, latest + 1.0))
                state = state.with_trigger(name, replace(trigger, pause=pause))
        return state

    def resumed(self, now: float, spread_s: float) -> State:
        """Emit a RESUME for each ACTIVE task whose session has no other reason to run."""
        state = self
        for task_id, task in self.tasks.items():
            is_woken = any(
                each.session == task.session and each.status in OPEN
                for each in state.triggers.values()
            )
            if task.status == "ACTIVE" and not is_woken:
                key = f"resume:{task_id}"
                # Of several with this key, any may have been removed.
                names = (f"{key} #{number}" for number in count())
                name = next(each for each in names if each not in state.triggers)
                trigger = ExpectedTrigger(key, task.session, now, 5, None, spread_s)
                state = state.emitted(name, trigger, now)
        return state

    # -- others --------------------------------------------------------------------------

    def schedule_of(self, trigger: ExpectedTrigger) -> tuple[str, ExpectedSchedule | None]:
        """Return the living schedule of an occurrence, or None."""
        prefix, _, parts = (trigger.key or "").partition(":")
        schedule_id = parts.partition(":")[0] if prefix in ("scheduled", "scheduled-once") else ""
        schedule = self.schedules.get(schedule_id)
        is_living = schedule is not None and schedule.ended_at is None
        return schedule_id, schedule if is_living else None

    def checkpointed(
        self, task_id: str, session: str, status: str, todos: str, events: Sequence[Event],
        now: float,
    ) -> State:  # fmt: skip
        """Append events to a task, and give it a status and todos."""
        old = self.tasks.get(task_id)
        before = () if old is None else old.events
        ended_at = now if status == "DONE" else None
        task = ExpectedTask(session, status, todos, (*before, *events), ended_at)
        return self.with_task(task_id, task)

    def intended(self, key: str, arguments: str) -> State:
        """Record an activity."""
        return replace(self, intents={**self.intents, key: arguments})

    def with_trigger(self, name: str, trigger: ExpectedTrigger) -> State:
        """Return the state with this trigger added, or in place of the one of that name."""
        return replace(self, triggers={**self.triggers, name: trigger})

    def with_task(self, task_id: str, task: ExpectedTask) -> State:
        """Return the state with this task added or replaced."""
        return replace(self, tasks={**self.tasks, task_id: task})

    def with_schedule(self, schedule_id: str, schedule: ExpectedSchedule) -> State:
        """Return the state with this schedule added or replaced."""
        return replace(self, schedules={**self.schedules, schedule_id: schedule})

    def without_keys(self, *keys: str) -> State:
        """Return the state in which these keys are free."""
        held = {key: each for key, each in self.keys.items() if key not in keys}
        return replace(self, keys=held)

    def without_trigger(self, name: str) -> State:
        """Return the state without a trigger that may be removed."""
        key = self.triggers[name].key
        triggers = {each: row for each, row in self.triggers.items() if each != name}
        is_reminder = key is not None and key.startswith("reminder:")
        keys = {each: held for each, held in self.keys.items() if not is_reminder or each != key}
        return replace(self, triggers=triggers, keys=keys)


def _done(trigger: ExpectedTrigger, resolution: str, now: float) -> ExpectedTrigger:
    return replace(
        trigger, status="DONE", resolution=resolution, payload="null", description=None,
        settled_at=now,
    )  # fmt: skip
