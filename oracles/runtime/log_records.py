"""The facts in lines, as plain values: agents, messages, turns and what a turn promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

USER: Final = "USER"
RUNTIME: Final = "RUNTIME"

SENT_KINDS: Final = frozenset(("text", "poke", "response"))
"""Kinds of message that a turn's outbox holds; an error is sent about these when they fail."""

KINDS: Final = SENT_KINDS | {"bootstrap", "error", "notice", "reminder", "system"}


class AgentRecord(NamedTuple):
    """What ``agent.created`` says."""

    agent_id: str
    name: str
    parent_session_id: str | None
    instructions: str
    request_id: str | None


class MessageRecord(NamedTuple):
    """One message, whole."""

    message_id: str
    sender: str
    recipient: str
    kind: str
    payload: Any
    timestamp: str
    reply_to: str | None
    metadata: Mapping[str, Any]


class SpawnRecord(NamedTuple):
    """A child that a turn promises."""

    agent_id: str
    session_id: str
    name: str
    instructions: str
    provider: str
    model: str
    bootstrap_id: str


class ControlRecord(NamedTuple):
    """A gate, an ungate or a permit that a turn promises; ``op`` is the event without ``tool.``."""

    control_id: str
    target: str
    op: str


class SubscriptionRecord(NamedTuple):
    """A turn's wish to be told of an end."""

    subscription_id: str
    target: str


class ReminderRecord(NamedTuple):
    """A turn's message to its own agent, later; ``due_ns`` since 1970."""

    reminder_id: str
    due_ns: int
    payload: Any


class StartRecord(NamedTuple):
    """A ``turn.start``; ``history`` is how many turns were complete before it."""

    turn_id: str
    seq: int
    prompt: str
    presented: tuple[str, ...]
    history: int


class TurnRecord(NamedTuple):
    """A ``turn.complete``; ``start`` is None when the log does not hold its ``turn.start``."""

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


def agent_of(data: Mapping[str, Any]) -> AgentRecord:
    """Return the agent in the data of ``agent.created``; ``KeyError`` names what lacks."""
    return AgentRecord(
        data["agent_id"],
        data["name"],
        data["parent_session_id"],
        data["instructions"],
        data.get("request_id"),
    )


def message_of(data: Mapping[str, Any]) -> MessageRecord:
    """Return the message in these members; ``KeyError`` names what lacks."""
    return MessageRecord(
        data["message_id"],
        data["sender"],
        data["recipient"],
        data["kind"],
        data["payload"],
        data["timestamp"],
        data["reply_to"],
        data["metadata"],
    )


def turn_of(
    data: Mapping[str, Any], seq: int, number: int, start: StartRecord | None
) -> TurnRecord:
    """Return the turn in the data of ``turn.complete``; ``KeyError`` names what lacks."""
    return TurnRecord(
        data["turn_id"],
        seq,
        number,
        start,
        tuple(data["presented"]),
        data["response"],
        tuple(message_of(message) for message in data["outbox"]),
        tuple(_spawn_of(spawn) for spawn in data["spawned"]),
        data["terminate"],
        tuple(
            ControlRecord(c["control_id"], c["target"], c["op"]) for c in data.get("controls", ())
        ),
        tuple(
            SubscriptionRecord(s["subscription_id"], s["target"])
            for s in data.get("subscribed", ())
        ),
        tuple(data.get("unsubscribed", ())),
        tuple(
            ReminderRecord(r["reminder_id"], r["due_ns"], r["payload"])
            for r in data.get("reminders", ())
        ),
        tuple(data.get("cancelled", ())),
        data.get("metadata", {}),
        tuple(data.get("returned", ())),
        data.get("permitted", False),
    )


def _spawn_of(data: Mapping[str, Any]) -> SpawnRecord:
    return SpawnRecord(
        data["agent_id"],
        data["session_id"],
        data["name"],
        data["instructions"],
        data["provider"],
        data["model"],
        data["bootstrap_id"],
    )
