"""Triggers, schedules, tasks and intents of one root, run beside the system.

Each transaction has one state before it, and one or a few possible states after it. A call that
has returned leaves one of the states after it; a call that was in flight at a crash leaves any of
them. The shadow learns only three things from the system: which of these states it has, the ids
that it has created, and times within bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from oracles.durable.differences import SLACK_S, difference, is_torn
from oracles.durable.rows import Rows
from oracles.durable.shadow_state import State
from oracles.durable.violations import FreedKey, KeptTooLong, TornTransaction
from oracles.violation import Phantom

DAY_S: Final = 86_400
WEEK_S: Final = 7 * DAY_S
STARTED_S: Final = 1.0
"""The most seconds between the begin of a transaction and the time at which it takes a key."""


class ShadowDurable:
    """The acknowledged state, and the states that a call in flight may leave.

    ``ids`` are the ids of triggers by the names that the shadow gives them. ``now`` returns the
    time that the system must use, in seconds since 1970.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.state = State()
        self._now = now
        self._ended_by: dict[str, float] = {}
        self.ids: dict[str, str] = {}
        self._in_flight: tuple[State, ...] = ()
        self._is_certain = False
        self._collected_at: float | None = None
        self._settled_keys: frozenset[str] = frozenset()

    @property
    def settled(self) -> bool:
        """Whether no call is in flight."""
        return not self._in_flight

    def name_of(self, trigger_id: str) -> str:
        """Return the name of the trigger with an id that the system has returned."""
        for name, known in self.ids.items():
            if known == trigger_id:
                return name
        raise Phantom("a trigger was named that nothing has emitted", trigger_id=trigger_id)

    def begin(self, *after: State, certain: bool = False) -> None:
        """Record that a transaction begins, which leaves one of these states.

        ``certain``: it applies the outbox of a durable line, so after a crash a recovery does it.
        """
        self._in_flight = after
        self._is_certain = certain

    def return_unread(self) -> None:
        """Record that the transaction has returned, and that the rows could not be read."""
        self._is_certain = bool(self._in_flight)

    def refuse(self) -> None:
        """Record that the transaction was refused, and has changed nothing."""
        self._in_flight = ()

    def acknowledge(self, rows: Rows) -> None:
        """Check the rows after a transaction has returned, or while none is in flight."""
        candidates = self._in_flight or (self.state,)
        self._adopt(candidates, rows)

    def begin_collect(self, now: float, settled_keys: Iterable[str]) -> None:
        """Record that the removal of settled rows begins; only these activities are settled."""
        self._collected_at = now
        self._settled_keys = frozenset(settled_keys)

    def acknowledge_collect(self, rows: Rows, old_keys: Iterable[str]) -> None:
        """Check that exactly the rows that can be removed were removed.

        ``old_keys`` are the activities that have certainly been settled for a day.
        """
        assert self._collected_at is not None
        now = self._collected_at
        self.acknowledge(rows)
        self._collected_at = None
        for name, (_, keep_s) in _ended(self.state).items():
            if self._ended_by[name] < now - keep_s - STARTED_S:
                raise KeptTooLong("a row that has ended was not removed", name=name)
        for key in rows.keys:
            held = self.state.keys[key]
            stays = held.scope == "window" and held.holder in self.state.triggers
            if not stays and self.state.holder(key, now - STARTED_S) is None:
                raise KeptTooLong("a key that refuses nothing was not removed", actual=key)
        for key, held in self.state.keys.items():
            if key not in rows.keys and self.state.holder(key, now + SLACK_S) is not None:
                raise FreedKey("a key is free that is taken", key=key, expected=held)
        for key in old_keys:
            if key in rows.activities:
                raise KeptTooLong("a settled activity was not removed", key=key)

    def settle(self, rows: Rows, recovered: Callable[[State], State], began: float) -> bool:
        """Check the rows after a recovery, which changes a state to ``recovered(state)``.

        ``began`` is the time of its first boot. It may be before the crash, if the clock was
        set back; then outboxes are applied at that time. Returns whether a transaction that
        was in flight has happened.
        """
        before, in_flight = self.state, self._in_flight
        first = () if self._is_certain else (before,)
        candidates = tuple(recovered(each) for each in (*first, *in_flight))
        position = self._adopt(candidates, rows)
        self.state = _ended_at(began, before, self.state)
        self._collected_at = None
        return position >= len(first)

    def _adopt(self, candidates: tuple[State, ...], rows: Rows) -> int:
        """Take the candidate that the rows show; return its number, or raise a violation."""
        found = []
        for position, candidate in enumerate(candidates):
            ids = dict(self.ids)
            expected = self._without_collected(candidate, rows)
            violation = difference(expected, rows, ids)
            if violation is None:
                self.ids = _renamed(ids, set(candidate.triggers) - set(expected.triggers))
                self.state = _exact(expected, rows, ids)
                self._in_flight, self._is_certain = (), False
                self._ended_by = {
                    name: self._ended_by.get(name, max(ended_at, self._now()))
                    for name, (ended_at, _) in _ended(self.state).items()
                }
                return position
            found.append(violation)
        if len(candidates) > 1 and is_torn(candidates, rows, self.ids):
            raise TornTransaction(
                "only a part of a transaction has happened",
                before=str(found[0]),
                after=str(found[-1]),
            )
        raise found[0]

    def _without_collected(self, state: State, rows: Rows) -> State:
        """Return the state without the missing rows that the retention may have removed.

        Keys that refuse nothing may be missing at any time.
        """
        if self._collected_at is None:
            return state
        now, there = self._collected_at + SLACK_S, {row["id"] for row in rows.triggers}
        for name, trigger in state.triggers.items():
            is_old = trigger.settled_at <= now - DAY_S
            if trigger.status == "DONE" and is_old and self.ids.get(name) not in there:
                state = state.without_trigger(name)
        gone = [key for key in self._settled_keys if key not in rows.activities]
        intents = {key: each for key, each in state.intents.items() if key not in gone}
        tasks = {
            task_id: task
            for task_id, task in state.tasks.items()
            if not _has_ended(task.ended_at, now) or task_id in rows.tasks
        }
        schedules = {
            schedule_id: schedule
            for schedule_id, schedule in state.schedules.items()
            if not _has_ended(schedule.ended_at, now) or schedule_id in rows.schedules
        }
        return replace(state, intents=intents, tasks=tasks, schedules=schedules)


def _renamed(ids: Mapping[str, str], removed: set[str]) -> dict[str, str]:
    """Return the ids with other names for removed triggers whose names may be used again.

    Those are RESUME triggers, and occurrences that were superseded.
    """
    again = {name for name in removed if name.startswith("resume:") or " at " in name}
    return {
        f"{name}, removed as {known}" if name in again else name: known
        for name, known in ids.items()
    }


def _ended(state: State) -> dict[str, tuple[float, int]]:
    """Return the earliest time at which each row may have ended, and the seconds it is kept."""
    found = {
        name: (each.settled_at, DAY_S)
        for name, each in state.triggers.items()
        if each.status == "DONE"
    }
    ends = {name: each.ended_at for name, each in state.tasks.items()}
    ends |= {name: each.ended_at for name, each in state.schedules.items()}
    return found | {name: (end, WEEK_S) for name, end in ends.items() if end is not None}


def _ended_at(began: float, before: State, after: State) -> State:
    """Return the state in which the rows that a recovery has ended have ended by ``began``."""
    known = _ended(before)
    for name, trigger in after.triggers.items():
        if trigger.status == "DONE" and name not in known:
            settled_at = min(trigger.settled_at, began)
            after = after.with_trigger(name, replace(trigger, settled_at=settled_at))
    for task_id, task in after.tasks.items():
        if task.ended_at is not None and task_id not in known:
            ended_at = min(task.ended_at, began)
            after = after.with_task(task_id, replace(task, ended_at=ended_at))
    for schedule_id, schedule in after.schedules.items():
        if schedule.ended_at is not None and schedule_id not in known:
            ended_at = min(schedule.ended_at, began)
            after = after.with_schedule(schedule_id, replace(schedule, ended_at=ended_at))
    return after


def _has_ended(ended_at: float | None, now: float) -> bool:
    return ended_at is not None and ended_at <= now - WEEK_S


def _exact(state: State, rows: Rows, ids: Mapping[str, str]) -> State:
    """Return the state with the times that the rows show."""
    by_id = {row["id"]: row for row in rows.triggers}
    triggers = {}
    for name, trigger in state.triggers.items():
        row = by_id[ids[name]]
        pause = None if row["not_before"] is None else (row["not_before"], row["not_before"])
        triggers[name] = replace(
            trigger, fire_at=row["fire_at"], spread_s=0.0, payload=row["payload_json"],
            pause=pause,
        )  # fmt: skip
    return replace(state, triggers=triggers)
