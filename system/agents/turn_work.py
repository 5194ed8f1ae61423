"""The work of a turn in ``state.db``: activities, tasks, triggers and schedules of its line.

The trigger that the line settles, and its reminders, are members of ``TurnComplete``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from system.agents.outbox import objects, strings
from system.durable.schedule import ScheduleSpec
from system.durable.task import TaskStatus
from system.durable.trigger import TriggerSpec
from system.ports import Json, JsonObject


class OutboxActivity(NamedTuple):
    """An irreversible action to be performed after the line; ``key`` is its idempotency key."""

    key: str
    action: str
    arguments: JsonObject
    task_id: str | None = None

    @classmethod
    def from_data(cls, data: JsonObject) -> OutboxActivity:
        """Decode a member of a line; raise ``KeyError`` or ``ValueError`` for other data."""
        (arguments,) = objects([data["arguments"]])
        task_id = data["task_id"]
        return cls(
            str(data["key"]), str(data["action"]), arguments,
            None if task_id is None else str(task_id),
        )  # fmt: skip


class TaskProgress(NamedTuple):
    """The checkpoint of a task; ``last_seq`` is the event that it follows, 0 begins the task.

    ``events`` are names with data.
    """

    task_id: str
    last_seq: int
    status: TaskStatus
    todos: Json
    events: tuple[tuple[str, Json], ...]

    @property
    def next_seq(self) -> int:
        """The number of its last event."""
        return self.last_seq + len(self.events)

    def data(self) -> JsonObject:
        """Return the object in the turn's line."""
        return {
            "task_id": self.task_id,
            "last_seq": self.last_seq,
            "status": str(self.status),
            "todos": self.todos,
            "events": [{"event": event, "data": data} for event, data in self.events],
        }

    @classmethod
    def from_data(cls, data: JsonObject) -> TaskProgress:
        """Decode the result of ``data``; raise ``KeyError`` or ``ValueError`` for other data."""
        events = [(str(each["event"]), each["data"]) for each in objects(data["events"])]
        status = TaskStatus(str(data["status"]))
        last_seq = int(str(data["last_seq"]))
        return cls(str(data["task_id"]), last_seq, status, data["todos"], tuple(events))


class EmittedTrigger(NamedTuple):
    """A trigger for the agent itself; ``fire_at`` is in seconds since 1970, None is now."""

    trigger_id: str
    source: str
    payload: Json
    description: str | None
    fire_at: float | None
    key: str | None
    priority: int | None

    def spec(self, session_id: str | None) -> TriggerSpec:
        """Return the specification of the trigger."""
        return TriggerSpec(
            self.source, self.payload, self.description, session_id, self.fire_at, self.key,
            self.priority,
        )  # fmt: skip


class NewSchedule(NamedTuple):
    """A schedule that emits triggers for the agent."""

    schedule_id: str
    kind: str
    spec: str
    zone: str
    payload: Json
    description: str | None
    priority: int | None
    catch_up: str

    def schedule(self, session_id: str | None) -> ScheduleSpec:
        """Return the specification of the schedule."""
        return ScheduleSpec(
            self.kind, self.spec, self.zone, session_id, self.payload, self.description,
            self.priority, self.catch_up,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class TurnWork:
    """The work of a turn, in the order of the calls; ``unscheduled`` are ids of schedules that end.

    A turn without work has the object ``NO_WORK``.
    """

    activities: Sequence[OutboxActivity] = ()
    tasks: Sequence[TaskProgress] = ()
    emitted: Sequence[EmittedTrigger] = ()
    scheduled: Sequence[NewSchedule] = ()
    unscheduled: Sequence[str] = ()

    def data(self) -> JsonObject:
        """Return the members of the line; the caller omits empty ones."""
        return {
            "activities": [dict(activity._asdict()) for activity in self.activities],
            "tasks": [task.data() for task in self.tasks],
            "emitted": [dict(trigger._asdict()) for trigger in self.emitted],
            "scheduled": [dict(schedule._asdict()) for schedule in self.scheduled],
            "unscheduled": list[Json](self.unscheduled),
        }

    @classmethod
    def from_data(cls, data: JsonObject) -> TurnWork:
        """Decode the members of a line; raise ``KeyError`` or ``ValueError`` for other data."""
        if _MEMBERS.isdisjoint(data):
            return NO_WORK
        return cls(
            [OutboxActivity.from_data(item) for item in objects(data.get("activities"))],
            [TaskProgress.from_data(item) for item in objects(data.get("tasks"))],
            [
                EmittedTrigger(
                    str(item["trigger_id"]), str(item["source"]), item["payload"],
                    _text(item["description"]), _number(item["fire_at"]), _text(item["key"]),
                    _integer(item["priority"]),
                )
                for item in objects(data.get("emitted"))
            ],
            [
                NewSchedule(
                    str(item["schedule_id"]), str(item["kind"]), str(item["spec"]),
                    str(item["zone"]), item["payload"], _text(item["description"]),
                    _integer(item["priority"]), str(item["catch_up"]),
                )
                for item in objects(data.get("scheduled"))
            ],
            strings(data.get("unscheduled")),
        )  # fmt: skip


_MEMBERS = frozenset(("activities", "tasks", "emitted", "scheduled", "unscheduled"))
NO_WORK = TurnWork()


@dataclass(slots=True)
class WorkDraft:
    """The work of a turn that is under way; ``tasks`` is by id."""

    activities: list[OutboxActivity] = field(default_factory=list)
    tasks: dict[str, TaskProgress] = field(default_factory=dict)
    emitted: list[EmittedTrigger] = field(default_factory=list)
    scheduled: list[NewSchedule] = field(default_factory=list)
    unscheduled: list[str] = field(default_factory=list)

    def complete(self) -> TurnWork:
        """Return the work of the turn."""
        if not (
            self.activities or self.tasks or self.emitted or self.scheduled or self.unscheduled
        ):
            return NO_WORK
        return TurnWork(
            self.activities, list(self.tasks.values()), self.emitted, self.scheduled,
            self.unscheduled,
        )  # fmt: skip


def _text(value: Json) -> str | None:
    return None if value is None else str(value)


def _number(value: Json) -> float | None:
    return None if value is None else float(str(value))


def _integer(value: Json) -> int | None:
    return None if value is None else int(str(value))
