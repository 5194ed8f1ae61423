"""The law of effects for the durable work of a turn: activities, tasks, triggers, schedules.

It implements the rows of the table "Tools" of ``docs/runtime.md`` from ``perform`` on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from oracles.runtime.log_records import (
    ActivityRecord,
    EmittedRecord,
    ScheduleRecord,
    TaskRecord,
    TurnRecord,
)
from oracles.runtime.session_state import SessionState

SECOND_NS: Final = 1_000_000_000
WORK_TOOLS: Final = frozenset(
    ("perform", "begin_task", "checkpoint", "list_tasks", "emit", "schedule", "unschedule")
)
DUE_TOLERANCE_NS: Final = 1_000_000
"""The most time between a call of ``emit`` and the reading of the clock inside it."""


class ToolCallLike(Protocol):
    """A tool call and its result."""

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> Mapping[str, Any]: ...
    @property
    def result(self) -> Mapping[str, Any]: ...
    @property
    def at_ns(self) -> int | None: ...


class WorkEffects:
    """The parts that a line must have because of the accepted ``calls`` of its turn, by name."""

    def __init__(
        self, state: SessionState, turn: TurnRecord, calls: Iterable[ToolCallLike]
    ) -> None:
        self._known = _tasks_before(state, turn)
        self._activities: list[ActivityRecord] = []
        self._tasks: dict[str, TaskRecord] = {}
        self._emitted: list[EmittedRecord] = []
        self._scheduled: list[ScheduleRecord] = []
        self._unscheduled: list[str] = []
        self.due_ns: dict[str, int] = {}
        for call in calls:
            self._add(call)

    @property
    def parts(self) -> Mapping[str, object]:
        """Each part as the line has it; triggers without their times, which are in ``due_ns``."""
        return {
            "activities": tuple(self._activities),
            "tasks": tuple(self._tasks.values()),
            "emitted": tuple(self._emitted),
            "scheduled": tuple(self._scheduled),
            "unscheduled": tuple(self._unscheduled),
        }

    def _add(self, call: ToolCallLike) -> None:
        arguments, result, get = call.arguments, call.result, call.arguments.get
        match call.name:
            case "perform":
                self._activities.append(
                    ActivityRecord(
                        result["activity_id"], arguments["action"], get("arguments", {}),
                        get("task_id"),
                    )
                )  # fmt: skip
            case "begin_task":
                self._tasks[result["task_id"]] = TaskRecord(
                    result["task_id"], 0, "ACTIVE", arguments["todos"],
                    ({"event": get("event", "begin"), "data": get("data")},),
                )  # fmt: skip
            case "checkpoint":
                self._checkpoint(arguments)
            case "emit":
                if call.at_ns is not None:
                    self.due_ns[result["trigger_id"]] = call.at_ns + get("delay_ns", 0)
                self._emitted.append(
                    EmittedRecord(
                        result["trigger_id"], get("source", "IMMEDIATE"), arguments["payload"],
                        get("description"), 0.0, get("key"), get("priority"),
                    )
                )  # fmt: skip
            case "schedule":
                self._scheduled.append(
                    ScheduleRecord(
                        result["schedule_id"], arguments["kind"], arguments["spec"],
                        get("zone", "UTC"), get("payload"), get("description"), get("priority"),
                        get("catch_up", "latest"),
                    )
                )  # fmt: skip
            case "unschedule":
                self._unscheduled.append(arguments["schedule_id"])

    def _checkpoint(self, arguments: Mapping[str, Any]) -> None:
        task_id = arguments["task_id"]
        event = {"event": arguments["event"], "data": arguments.get("data")}
        status = arguments.get("status", "ACTIVE")
        if task_id in self._tasks:
            drafted = self._tasks[task_id]
            todos = arguments.get("todos", drafted.todos)
            self._tasks[task_id] = drafted._replace(
                status=status, todos=todos, events=(*drafted.events, event)
            )
            return
        last_seq, todos = self._known.get(task_id, (-1, None))
        todos = arguments.get("todos", todos)
        self._tasks[task_id] = TaskRecord(task_id, last_seq, status, todos, (event,))


def _tasks_before(state: SessionState, turn: TurnRecord) -> dict[str, tuple[int, Any]]:
    """Return the last event and the todos of each task of an agent before a turn."""
    known: dict[str, tuple[int, Any]] = {}
    for other in state.turns.values():
        if other.number >= turn.number:
            continue
        for task in other.tasks:
            known[task.task_id] = task.last_seq + len(task.events), task.todos
    return known
