"""Tasks: the checkpoints of work that takes several turns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, cast

from system.durable.table import Table
from system.ports import Json


class TaskStatus(StrEnum):
    """The states of a task."""

    ACTIVE = "ACTIVE"
    WAITING = "WAITING"
    """It waits for an event that will wake its session."""
    BLOCKED = "BLOCKED"
    """Resuming it has failed too often; a person, or a turn of the task, ends this state."""
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


FINAL: Final = (TaskStatus.DONE, TaskStatus.FAILED, TaskStatus.CANCELLED)


class Task(NamedTuple):
    """A row of ``tasks``; ``last_seq`` is the number of its last event."""

    task_id: str
    session_id: str
    status: TaskStatus
    todos_json: str
    last_seq: int
    turn_id: str | None
    reason: str | None
    created_at: float
    updated_at: float

    @property
    def todos(self) -> Json:
        """The list of things to do, in the form that the agent has given it."""
        return cast("Json", json.loads(self.todos_json))


TASKS: Final = Table("tasks", Task)


class TaskEvent(NamedTuple):
    """A row of ``task_events``, which are appended and never rewritten."""

    task_id: str
    seq: int
    ts: float
    event: str
    data_json: str


TASK_EVENTS: Final = Table("task_events", TaskEvent, key_columns=2)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The progress of a task in one turn.

    ``last_seq`` is that of the task when the turn read it, 0 for a new task. ``events`` are names
    with data, at least one; they get the numbers after ``last_seq``.
    """

    task_id: str
    session_id: str
    last_seq: int
    status: TaskStatus
    todos: Json
    events: Sequence[tuple[str, Json]]
    turn_id: str | None = None
