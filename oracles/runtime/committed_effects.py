"""The effects of committed turns, which other logs, ``state.db`` or later lines must show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from oracles.runtime.log_records import (
    ControlRecord,
    MessageRecord,
    ReminderRecord,
    SpawnRecord,
    SubscriptionRecord,
    TurnRecord,
)
from oracles.violation import Duplicated


class CommittedEffects(Protocol):
    """The collections of a session that a committed turn adds to."""

    sent: dict[str, tuple[tuple[int, int], MessageRecord]]
    bootstraps: dict[str, SpawnRecord]
    controls: dict[str, ControlRecord]
    subscriptions: dict[str, SubscriptionRecord]
    unsubscribed: dict[str, int]
    reminders: dict[str, ReminderRecord]
    cancelled: dict[str, int]
    handled: dict[str, int]
    metadata: dict[str, Any]


def add_effects(state: CommittedEffects, turn: TurnRecord) -> None:
    """Add the effects of a turn; raise ``Duplicated`` if two of them have one id."""
    for place, message in enumerate(turn.outbox):
        _require_new(state.sent, message.message_id)
        state.sent[message.message_id] = (turn.number, place), message
    for spawn in turn.spawned:
        _require_new(state.bootstraps, spawn.bootstrap_id)
        state.bootstraps[spawn.bootstrap_id] = spawn
    for control in turn.controls:
        _require_new(state.controls, control.control_id)
        state.controls[control.control_id] = control
    for subscription in turn.subscribed:
        _require_new(state.subscriptions, subscription.subscription_id)
        state.subscriptions[subscription.subscription_id] = subscription
    for reminder in turn.reminders:
        _require_new(state.reminders, reminder.reminder_id)
        state.reminders[reminder.reminder_id] = reminder
    if turn.trigger_id is not None:
        _require_new(state.handled, turn.trigger_id)
        state.handled[turn.trigger_id] = turn.seq
    state.unsubscribed.update(dict.fromkeys(turn.unsubscribed, turn.seq))
    state.cancelled.update(dict.fromkeys(turn.cancelled, turn.seq))
    state.metadata.update(turn.metadata)


def _require_new(used: Mapping[str, object], key: str) -> None:
    if key in used:
        raise Duplicated("two effects of an agent's turns have the same id", id=key)
