"""Triggers, schedules, tasks and intents of one root, run beside the system.

Each transaction has one state before it, and one or a few after it. A call that has returned
leaves one of the latter; one that was in flight at a crash any of them. Nothing is learnt from
the system, except which of these it is, the ids that it has minted, and times within bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from oracles.durable.rows import Row, Rows
from oracles.durable.shadow_state import OPEN, ExpectedTrigger, State
from oracles.durable.violations import (
    EndlessRetry,
    MovedTime,
    RepeatedTrigger,
    TornTransaction,
    UncountedAttempt,
    WrongSchedule,
)
from oracles.violation import InvalidState, LostAck, Phantom, Resurrected, TornRecord, Violation

DAY_S: Final = 86_400
SLACK_S: Final = 0.001
_STOPPED: Final = ("FAILED", "DEAD")


class ShadowDurable:
    """The state that is acknowledged, and those that a call in flight may leave.

    ``ids`` are the ids of triggers by the names that the shadow gives them.
    """

    def __init__(self) -> None:
        self.state = State()
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
        """Return the name of a trigger that the system has named."""
        for name, known in self.ids.items():
            if known == trigger_id:
                return name
        raise Phantom("a trigger was named that nothing has emitted", trigger_id=trigger_id)

    def begin(self, *after: State, certain: bool = False) -> None:
        """Record that a transaction begins that leaves one of these states.

        If it is ``certain``, a durable line demands it, and a recovery carries it out.
        """
        self._in_flight = after
        self._is_certain = certain

    def return_unread(self) -> None:
        """Record that the transaction has returned, and that the rows could not be read."""
        self._is_certain = bool(self._in_flight)

    def refuse(self) -> None:
        """Record that the transaction has surely changed nothing."""
        self._in_flight = ()

    def acknowledge(self, rows: Rows) -> None:
        """Check the rows after a transaction that has returned, or while none is in flight."""
        candidates = self._in_flight or (self.state,)
        self._adopt(candidates, rows)

    def begin_collect(self, now: float, settled_keys: Iterable[str]) -> None:
        """Record that settled rows are being removed; only these activities are settled."""
        self._collected_at = now
        self._settled_keys = frozenset(settled_keys)

    def acknowledge_collect(self, rows: Rows) -> None:
        """Check that exactly the settled triggers of a day were removed."""
        assert self._collected_at is not None
        before = self._collected_at - DAY_S - SLACK_S
        there = {row["id"] for row in rows.triggers}
        for name, trigger in self.state.triggers.items():
            is_old = trigger.status == "DONE" and trigger.settled_at < before
            if is_old and self.ids[name] in there:
                raise InvalidState("a settled trigger was not removed", trigger=trigger)
        self.acknowledge(rows)
        self._collected_at = None

    def settle(self, rows: Rows, recovered: Callable[[State], State]) -> bool:
        """Check the rows after a recovery, which makes ``recovered(state)`` of the state before.

        Returns whether a transaction in flight has happened.
        """
        before, in_flight = self.state, self._in_flight
        first = () if self._is_certain else (before,)
        candidates = tuple(recovered(each) for each in (*first, *in_flight))
        position = self._adopt(candidates, rows)
        self._collected_at = None
        return position >= len(first)

    def _adopt(self, candidates: tuple[State, ...], rows: Rows) -> int:
        """Take the candidate that the rows show; return its number, or raise a violation."""
        found = []
        for position, candidate in enumerate(candidates):
            ids = dict(self.ids)
            expected = self._without_collected(candidate, rows)
            violation = _difference(expected, rows, ids)
            if violation is None:
                self.ids = ids
                self.state = _exact(expected, rows, ids)
                self._in_flight, self._is_certain = (), False
                return position
            found.append(violation)
        if len(candidates) > 1 and _is_torn(candidates, rows, self.ids):
            raise TornTransaction(
                "a part of a transaction is there", before=str(found[0]), after=str(found[-1])
            )
        raise found[0]

    def _without_collected(self, state: State, rows: Rows) -> State:
        if self._collected_at is None:
            return state
        there = {row["id"] for row in rows.triggers}
        for name, trigger in state.triggers.items():
            is_old = trigger.settled_at <= self._collected_at - DAY_S + SLACK_S
            if trigger.status == "DONE" and is_old and self.ids.get(name) not in there:
                state = state.without_trigger(name)
        gone = [key for key in self._settled_keys if key not in rows.activities]
        intents = {key: each for key, each in state.intents.items() if key not in gone}
        tasks = {
            task_id: task
            for task_id, task in state.tasks.items()
            if task.status != "DONE" or task_id in rows.tasks
        }
        schedules = {
            schedule_id: schedule
            for schedule_id, schedule in state.schedules.items()
            if schedule.upcoming is not None or schedule_id in rows.schedules
        }
        return replace(state, intents=intents, tasks=tasks, schedules=schedules)


def _difference(state: State, rows: Rows, ids: dict[str, str]) -> Violation | None:
    """Return the first difference between state and rows; new ids are added to ``ids``."""
    by_id = {row["id"]: row for row in rows.triggers}
    unknown = {row_id: by_id[row_id] for row_id in by_id if row_id not in ids.values()}
    for name, trigger in state.triggers.items():
        if name not in ids:
            fresh = [each for each, row in unknown.items() if _may_be(trigger, row)]
            if fresh:
                ids[name] = fresh[0]
                del unknown[fresh[0]]
        row = by_id.get(ids.get(name, ""))
        if row is None:
            return LostAck("a trigger is gone", name=name, expected=trigger)
        violation = _trigger_difference(name, trigger, row)
        if violation is not None:
            return violation
    if len(by_id) > len(state.triggers):
        names = {ids[name] for name in state.triggers}
        return _surplus(state, [row for each, row in by_id.items() if each not in names])
    return _schedule_difference(state, rows) or _task_difference(state, rows)


def _is_torn(candidates: Sequence[State], rows: Rows, ids: Mapping[str, str]) -> bool:
    """Return whether each trigger and task by itself is that of some candidate."""
    by_id = {row["id"]: row for row in rows.triggers}
    for name in {name for each in candidates for name in each.triggers}:
        row = by_id.get(ids.get(name, ""))
        if not any(_is_trigger(name, each.triggers.get(name), row) for each in candidates):
            return False
    for task_id in {task_id for each in candidates for task_id in each.tasks}:
        found = rows.tasks.get(task_id, {})
        shown = found.get("status"), found.get("last_seq")
        expected = [each.tasks.get(task_id) for each in candidates]
        if shown not in [(each and each.status, each and each.last_seq) for each in expected]:
            return False
    return True


def _is_trigger(name: str, trigger: ExpectedTrigger | None, row: Row | None) -> bool:
    if trigger is None or row is None:
        # A new one has no known id yet.
        return row is None
    return _trigger_difference(name, trigger, row) is None


def _surplus(state: State, rows: list[Row]) -> Violation:
    keys = {trigger.key for trigger in state.triggers.values()} | set(state.keys)
    for row in rows:
        if row["dedup_key"] in keys - {None}:
            return RepeatedTrigger("a trigger was emitted again under its key", actual=row)
    return Phantom("a trigger exists that nothing has emitted", actual=rows)


def _may_be(trigger: ExpectedTrigger, row: Row) -> bool:
    return (
        (trigger.key, trigger.session) == (row["dedup_key"], row["session_id"])
        and trigger.fire_at <= row["fire_at"] <= trigger.fire_at + trigger.spread_s
        and trigger.payload in (None, row["payload_json"])
    )


def _trigger_difference(name: str, trigger: ExpectedTrigger, row: Row) -> Violation | None:
    evidence = {"name": name, "expected": trigger, "actual": row}
    if not trigger.fire_at <= row["fire_at"] <= trigger.fire_at + trigger.spread_s:
        return MovedTime("the time of a trigger has changed", **evidence)
    if trigger.status != row["status"]:
        return _status_difference(trigger, row, evidence)
    if (trigger.attempts, trigger.fence) != (row["attempts"], row["fence"]):
        return UncountedAttempt("attempts or claims are counted wrongly", **evidence)
    if trigger.status == "PENDING":
        low, high = trigger.pause or (0.0, 0.0)
        not_before = row["not_before"] or 0.0
        if not low - SLACK_S <= not_before <= high + SLACK_S:
            return MovedTime("the pause of a trigger is another one", **evidence)
        if row["due_at"] != max(row["fire_at"], not_before):
            return MovedTime("a trigger is due at another time than its own", **evidence)
    if trigger.payload not in (None, row["payload_json"]):
        return TornRecord("a trigger has another payload", **evidence)
    if (trigger.session, trigger.resolution, trigger.missed, trigger.key, trigger.priority) != (
        row["session_id"], row["resolution"], row["missed"], row["dedup_key"], row["priority"],
    ):  # fmt: skip
        return InvalidState("a member of a trigger is another one", **evidence)
    return None


def _status_difference(
    trigger: ExpectedTrigger, row: Row, evidence: Mapping[str, object]
) -> Violation:
    actual = row["status"]
    if trigger.status in _STOPPED and actual in OPEN:
        return EndlessRetry("a trigger that has failed too often is run again", **evidence)
    if trigger.status == "DONE":
        return Resurrected("a settled trigger is back", **evidence)
    if actual == "DONE":
        return LostAck("a trigger counts as settled that was not handled", **evidence)
    return InvalidState("a trigger has another status", **evidence)


def _schedule_difference(state: State, rows: Rows) -> Violation | None:
    for schedule_id, schedule in state.schedules.items():
        row = rows.schedules.get(schedule_id)
        evidence = {"schedule_id": schedule_id, "expected": schedule, "actual": row}
        if row is None:
            return LostAck("a schedule is gone", **evidence)
        if schedule.upcoming != row["next_fire_at"] or (schedule.last or 0) > (
            row["last_nominal"] or 0
        ):
            return WrongSchedule("a schedule waits for another occurrence", **evidence)
    if set(rows.schedules) > set(state.schedules):
        return Phantom("a schedule exists that was not created", actual=rows.schedules)
    return None


def _task_difference(state: State, rows: Rows) -> Violation | None:
    for task_id, task in state.tasks.items():
        row = rows.tasks.get(task_id)
        evidence = {"task_id": task_id, "expected": task, "actual": row}
        if row is None:
            return LostAck("a task is gone", **evidence)
        if (row["session_id"], row["status"], row["last_seq"]) != (
            task.session, task.status, task.last_seq,
        ):  # fmt: skip
            return TornRecord("a task is in another state", **evidence)
        if rows.events.get(task_id, 0) != task.last_seq:
            return TornRecord("a task has other events", **evidence)
    if set(rows.tasks) | set(rows.events) > set(state.tasks):
        return Phantom("a task exists that was never begun", actual=rows.tasks)
    for key, arguments in state.intents.items():
        row = rows.activities.get(key)
        if row is None or row["arguments_json"] != arguments:
            return LostAck("an activity is gone, or another one", key=key, actual=row)
    if set(rows.activities) > set(state.intents):
        return Phantom("an activity exists that nothing has intended", actual=rows.activities)
    return None


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
