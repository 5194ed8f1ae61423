"""The records in the lines of a log: agents, messages, turns and the effects of a turn.

Each ``…_of`` function decodes the data of a line; ``KeyError`` names a missing member.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple

USER: Final = "USER"
RUNTIME: Final = "RUNTIME"

SENT_KINDS: Final = frozenset(("text", "poke", "response"))
"""The kinds of message in the outbox of a turn; one that fails is answered by an error."""

KINDS: Final = SENT_KINDS | {"activity", "bootstrap", "error", "notice", "reminder", "system"}
"""Only logs of older roots have the kind ``reminder``; no log has the kind ``trigger``."""


class AgentRecord(NamedTuple):
    """An ``agent.created`` line."""

    agent_id: str
    name: str
    parent_session_id: str | None
    instructions: str
    request_id: str | None


class MessageRecord(NamedTuple):
    """A ``message.enqueued`` line, or a message in the outbox of a turn."""

    message_id: str
    sender: str
    recipient: str
    kind: str
    payload: Any
    timestamp: str
    reply_to: str | None
    metadata: Mapping[str, Any]


class SpawnRecord(NamedTuple):
    """A child that a turn spawns."""

    agent_id: str
    session_id: str
    name: str
    instructions: str
    provider: str
    model: str
    bootstrap_id: str


class ControlRecord(NamedTuple):
    """A gate, an ungate or a permit that a turn orders; ``op`` is the event without ``tool.``."""

    control_id: str
    target: str
    op: str


class SubscriptionRecord(NamedTuple):
    """A subscription of a turn to the end of another agent."""

    subscription_id: str
    target: str


class ReminderRecord(NamedTuple):
    """A message of a turn to its own agent at ``due_ns``, nanoseconds since 1970."""

    reminder_id: str
    due_ns: int
    payload: Any


class ActivityRecord(NamedTuple):
    """An irreversible action that a turn asks for; ``key`` is its idempotency key."""

    key: str
    action: str
    arguments: Mapping[str, Any]
    task_id: str | None


class TaskRecord(NamedTuple):
    """A checkpoint of a task; ``events`` are objects that follow its event ``last_seq``."""

    task_id: str
    last_seq: int
    status: str
    todos: Any
    events: tuple[Mapping[str, Any], ...]


class EmittedRecord(NamedTuple):
    """A trigger of a turn for its own agent; ``fire_at`` is in seconds since 1970."""

    trigger_id: str
    source: str
    payload: Any
    description: str | None
    fire_at: float
    key: str | None
    priority: int | None


class ScheduleRecord(NamedTuple):
    """A schedule that a turn creates for its own agent."""

    schedule_id: str
    kind: str
    spec: str
    zone: str
    payload: Any
    description: str | None
    priority: int | None
    catch_up: str


class StartRecord(NamedTuple):
    """A ``turn.start`` line; ``history`` is the number of turns committed before it."""

    turn_id: str
    seq: int
    prompt: str
    presented: tuple[str, ...]
    history: int
    trigger_id: str | None = None


class TurnRecord(NamedTuple):
    """A ``turn.complete`` line; ``start`` is None if the log lacks its ``turn.start``.

    ``number`` is the number of turns committed before it. The outboxes of all lines up to
    ``dispatched`` were dispatched before this line was written.
    """

    turn_id: str
    seq: int
    number: int
    start: StartRecord | None
    presented: tuple[str, ...]
    response: str
    outbox: tuple[MessageRecord, ...]
    spawned: tuple[SpawnRecord, ...]
    terminate: bool
    controls: tuple[ControlRecord, ...]
    subscribed: tuple[SubscriptionRecord, ...]
    unsubscribed: tuple[str, ...]
    reminders: tuple[ReminderRecord, ...]
    cancelled: tuple[str, ...]
    metadata: Mapping[str, Any]
    returned: tuple[str, ...]
    permitted: bool
    dispatched: int
    trigger_id: str | None = None
    activities: tuple[ActivityRecord, ...] = ()
    tasks: tuple[TaskRecord, ...] = ()
    emitted: tuple[EmittedRecord, ...] = ()
    scheduled: tuple[ScheduleRecord, ...] = ()
    unscheduled: tuple[str, ...] = ()

    @property
    def has_state_entries(self) -> bool:
        """Whether the outbox of the line has entries for ``state.db``."""
        return bool(
            self.trigger_id or self.reminders or self.cancelled or self.activities or self.tasks
            or self.emitted or self.scheduled or self.unscheduled
        )  # fmt: skip


def agent_of(data: Mapping[str, Any]) -> AgentRecord:
    """Decode the data of ``agent.created``."""
    return AgentRecord(
        data["agent_id"],
        data["name"],
        data["parent_session_id"],
        data["instructions"],
        data.get("request_id"),
    )


_message_members: Final = itemgetter(*MessageRecord._fields)
_spawn_members: Final = itemgetter(*SpawnRecord._fields)
_control_members: Final = itemgetter(*ControlRecord._fields)
_subscription_members: Final = itemgetter(*SubscriptionRecord._fields)
_reminder_members: Final = itemgetter(*ReminderRecord._fields)
_activity_members: Final = itemgetter(*ActivityRecord._fields)
_task_members: Final = itemgetter(*TaskRecord._fields)
_emitted_members: Final = itemgetter(*EmittedRecord._fields)
_schedule_members: Final = itemgetter(*ScheduleRecord._fields)


def message_of(data: Mapping[str, Any]) -> MessageRecord:
    """Decode the data of ``message.enqueued``, or a member of ``outbox``."""
    return MessageRecord._make(_message_members(data))


def turn_of(
    data: Mapping[str, Any], seq: int, number: int, start: StartRecord | None
) -> TurnRecord:
    """Decode the data of ``turn.complete``."""
    get = data.get
    return TurnRecord(
        turn_id=data["turn_id"],
        seq=seq,
        number=number,
        start=start,
        presented=tuple(data["presented"]),
        response=data["response"],
        outbox=tuple(map(message_of, data["outbox"])),
        spawned=tuple(SpawnRecord._make(_spawn_members(s)) for s in data["spawned"]),
        terminate=data["terminate"],
        controls=tuple(ControlRecord._make(_control_members(c)) for c in get("controls", ())),
        subscribed=tuple(
            SubscriptionRecord._make(_subscription_members(s)) for s in get("subscribed", ())
        ),
        unsubscribed=tuple(get("unsubscribed", ())),
        reminders=tuple(ReminderRecord._make(_reminder_members(r)) for r in get("reminders", ())),
        cancelled=tuple(get("cancelled", ())),
        metadata=get("metadata", {}),
        returned=tuple(get("returned", ())),
        permitted=get("permitted", False),
        dispatched=get("dispatched", 0),
        trigger_id=data["trigger_id"],
        activities=tuple(ActivityRecord._make(_activity_members(a)) for a in get("activities", ())),
        tasks=tuple(
            TaskRecord._make(_task_members(t))._replace(events=tuple(t["events"]))
            for t in get("tasks", ())
        ),
        emitted=tuple(EmittedRecord._make(_emitted_members(e)) for e in get("emitted", ())),
        scheduled=tuple(ScheduleRecord._make(_schedule_members(s)) for s in get("scheduled", ())),
        unscheduled=tuple(get("unscheduled", ())),
    )
