"""The tools whose effects go to ``state.db``: activities, tasks, triggers, schedules.

Each call is checked here in full, so that the outbox of the turn can always be applied.
"""

from __future__ import annotations

from typing import Final

from system.agents.agent import Agent, KnownTask
from system.agents.message import check_payload, kept_payload
from system.agents.orchestrator import Orchestrator
from system.agents.tool_arguments import (
    Refused,
    delay_of,
    object_of,
    optional_text_of,
    text_of,
)
from system.agents.turn_complete import TurnDraft
from system.agents.turn_work import (
    EmittedTrigger,
    NewSchedule,
    OutboxActivity,
    TaskProgress,
    WorkDraft,
)
from system.durable.activity_runner import action_named
from system.durable.emitter import checked_spec
from system.durable.producers import RESUME
from system.durable.schedule import CatchUp
from system.durable.schedule_store import check_schedule
from system.durable.seconds import seconds_of
from system.durable.task import FINAL, TaskStatus
from system.durable.trigger import TriggerSource
from system.foreign import passes, reason_of, shown
from system.ports import Action, EffectRefused, Json, JsonObject, Performed, SideEffectClass

LONGEST_DELAY_NS: Final = 100 * 365 * 86_400 * 10**9
"""A hundred years."""
_OFFERED: Final = (
    TaskStatus.ACTIVE, TaskStatus.WAITING, TaskStatus.DONE, TaskStatus.FAILED,
    TaskStatus.CANCELLED,
)  # fmt: skip


class DurableTools:
    """The tools of one turn of ``agent``; ``draft`` collects their effects."""

    def __init__(
        self, orchestrator: Orchestrator, agent: Agent, turn_id: str, draft: TurnDraft
    ) -> None:
        self._orchestrator = orchestrator
        self._durable = orchestrator.durable
        self._agent = agent
        self._turn_id = turn_id
        draft.work = self._work = WorkDraft()
        self._performed = 0

    # -- activities ----------------------------------------------------------------------

    def perform(self, arguments: JsonObject) -> JsonObject:
        """Enqueue an irreversible action, to be performed when the line of the turn is durable."""
        action = self._action(arguments)
        if action.side_effect is not SideEffectClass.IRREVERSIBLE:
            raise Refused(
                f"action={action.name!r} is {action.side_effect}: its provider has to wait for it"
            )
        given = kept_payload(object_of(arguments, "arguments"))
        task_id = optional_text_of(arguments, "task_id")
        if task_id is not None:
            self._task(task_id)
        key = self._next_key(task_id)
        self._work.activities.append(OutboxActivity(key, action.name, given, task_id))
        return {"activity_id": key}

    async def perform_now(self, arguments: JsonObject) -> JsonObject:
        """Perform an action that may be repeated or undone; enqueue any other."""
        action = self._action(arguments)
        if action.side_effect is SideEffectClass.IRREVERSIBLE:
            return self.perform(arguments)
        given = kept_payload(object_of(arguments, "arguments"))
        host, key = self._orchestrator.host, self._next_key(None)
        try:
            async with host.clock.timeout(action.timeout_ns):
                answer: object = await host.effects.perform(action.name, key, given)
        except EffectRefused as refused:
            raise Refused(reason_of(refused)) from None
        except BaseException as failure:
            if passes(failure):
                raise
            raise Refused(f"action={action.name!r} failed: {shown(failure)}") from None
        if not isinstance(answer, Performed):
            raise Refused(f"action={action.name!r} has no result: {shown(answer)}")
        result: JsonObject = {"provider_ref": answer.provider_ref, "result": answer.result}
        return kept_payload(result)

    def _action(self, arguments: JsonObject) -> Action:
        return action_named(self._durable.actions, text_of(arguments, "action"))

    def _next_key(self, task_id: str | None) -> str:
        number, self._performed = self._performed, self._performed + 1
        return f"activity:{task_id or self._agent.session_id}:{self._turn_id}:{number}"

    # -- tasks ---------------------------------------------------------------------------

    def begin_task(self, arguments: JsonObject) -> JsonObject:
        """Begin a task of the agent."""
        task_id = self._orchestrator.host.ids.uuid_hex()
        event = _event(arguments, "begin")
        todos = kept_payload(arguments.get("todos"))
        self._work.tasks[task_id] = TaskProgress(task_id, 0, TaskStatus.ACTIVE, todos, (event,))
        return {"task_id": task_id}

    def checkpoint(self, arguments: JsonObject) -> JsonObject:
        """Append an event to a task; todos and status are kept unless they are given."""
        task_id = text_of(arguments, "task_id")
        before = self._task(task_id)
        event = _event(arguments)
        status = arguments.get("status", str(TaskStatus.ACTIVE))
        if status not in _OFFERED:
            raise Refused(f"status={shown(status, 100)} is none of {', '.join(_OFFERED)}")
        todos = kept_payload(arguments.get("todos", before.todos))
        drafted = self._work.tasks.get(task_id)
        last_seq = before.last_seq if drafted is None else drafted.last_seq
        events = (event,) if drafted is None else (*drafted.events, event)
        after = TaskProgress(task_id, last_seq, TaskStatus(status), todos, events)
        self._work.tasks[task_id] = after
        return {"last_seq": after.next_seq}

    def list_tasks(self, _arguments: JsonObject) -> JsonObject:
        """Return the tasks of the agent that have not ended."""
        stores = self._durable.stores
        blocked = set() if stores is None else stores.tasks.blocked
        tasks = {
            task_id: task._replace(status=TaskStatus.BLOCKED) if task_id in blocked else task
            for task_id, task in self._agent.tasks.items()
        }
        for task_id, progress in self._work.tasks.items():
            tasks[task_id] = KnownTask.behind(progress)
        return {
            "tasks": [
                {
                    "task_id": task_id,
                    "status": str(task.status),
                    "last_seq": task.last_seq,
                    "todos": task.todos,
                }
                for task_id, task in tasks.items()
                if task.status not in FINAL
            ]
        }

    def _task(self, task_id: str) -> KnownTask:
        """Return a task of the agent that has not ended, with the changes of this turn."""
        drafted = self._work.tasks.get(task_id)
        task = self._agent.tasks.get(task_id) if drafted is None else KnownTask.behind(drafted)
        if task is None or task.status in FINAL:
            raise Refused(f"there is no open task {shown(task_id, 100)}")
        return task

    # -- triggers and schedules ----------------------------------------------------------

    def emit(self, arguments: JsonObject) -> JsonObject:
        """Emit a trigger for the agent itself; nothing, if its key is taken."""
        delay_ns = delay_of(arguments, LONGEST_DELAY_NS, default=0)
        trigger = EmittedTrigger(
            self._orchestrator.host.ids.uuid_hex(),
            text_of(arguments, "source", str(TriggerSource.IMMEDIATE)),
            arguments.get("payload"),
            optional_text_of(arguments, "description"),
            seconds_of(self._durable.clock.now_ns() + delay_ns),
            optional_text_of(arguments, "key"),
            _priority(arguments),
        )
        checked = checked_spec(trigger.spec(self._agent.session_id))
        trigger = trigger._replace(payload=kept_payload(trigger.payload))
        if checked.source is TriggerSource.SCHEDULED:
            raise Refused("triggers of source=SCHEDULED come from remind_me and schedule")
        if checked.producer is RESUME:
            assert trigger.key is not None
            self._task(trigger.key.removeprefix(f"{RESUME.prefix}:"))
        self._work.emitted.append(trigger)
        return {"trigger_id": trigger.trigger_id}

    def schedule(self, arguments: JsonObject) -> JsonObject:
        """Create a schedule that emits triggers for the agent."""
        schedule = NewSchedule(
            self._orchestrator.host.ids.uuid_hex(),
            text_of(arguments, "kind"),
            text_of(arguments, "spec"),
            text_of(arguments, "zone", "UTC"),
            arguments.get("payload"),
            optional_text_of(arguments, "description"),
            _priority(arguments),
            text_of(arguments, "catch_up", str(CatchUp.LATEST)),
        )
        schedule = schedule._replace(payload=kept_payload(schedule.payload))
        host = self._orchestrator.host
        spec = schedule.schedule(self._agent.session_id)
        check_schedule(spec, host.zones, self._durable.clock.now_ns())
        self._work.scheduled.append(schedule)
        return {"schedule_id": schedule.schedule_id}

    def unschedule(self, arguments: JsonObject) -> JsonObject:
        """End a schedule of the agent; an unknown id, or one of another agent, changes nothing."""
        schedule_id = text_of(arguments, "schedule_id")
        check_payload(schedule_id)
        self._work.unscheduled.append(schedule_id)
        return {}


def _event(arguments: JsonObject, default: str | None = None) -> tuple[str, Json]:
    name = text_of(arguments, "event", default)
    _, data = kept_payload([name, arguments.get("data")])
    return name, data


def _priority(arguments: JsonObject) -> int | None:
    priority = arguments.get("priority")
    if priority is not None and type(priority) is not int:
        raise Refused(f"priority={shown(priority, 20)} is not an integer")
    return priority
