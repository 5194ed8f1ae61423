"""The data of ``log.snapshot``: the state of a session as one line, and back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

from system.agents.message import Message
from system.agents.outbox import Spawn, objects, strings
from system.agents.session_facts import (
    LAST_TURNS,
    AgentFacts,
    OpenTurn,
    SessionFacts,
    Unreachable,
    last_applied,
    optional_text,
)
from system.agents.turn_complete import Reminder, TurnComplete
from system.ports import Json, JsonObject

if TYPE_CHECKING:
    from system.agents.history import History

SNAPSHOT_FORMAT: Final = 1


def snapshot_data(
    history: History, ids: Iterable[str], controls: Iterable[str], dispatched_of: Mapping[str, int],
    known_ids: AbstractSet[str],
) -> JsonObject:  # fmt: skip
    """Return the data of ``log.snapshot``: the state of a session without the exchanges.

    ``ids`` and ``controls`` are those of lines that may be demanded again. A line that
    another session demands in one of its own up to the number in ``dispatched_of`` is here
    already, whether its id is kept or not. ``known_ids`` are kept in ``state.db``.
    """
    assert not history.ended, "an agent that has ended writes no segment"
    due = [key for key in history.subscriptions if f"{key}.notice" not in history.enqueued]
    return {
        "format": SNAPSHOT_FORMAT,
        "session": None if history.session is None else dict(history.session._asdict()),
        "agent": None if history.agent is None else dict(history.agent._asdict()),
        "identity": history.identity,
        "turn_count": history.turn_count,
        "last_turns": list[Json](history.last_turns),
        "pending": [message.data() for message in history.pending.values()],
        "presentations": dict[str, Json](history.presentations),
        "open_turns": [turn.data(turn_id) for turn_id, turn in history.open_turns.items()],
        "retry_of": history.retry_of,
        "subscriptions": {key: history.subscriptions[key] for key in due},
        "reminders": [dict(reminder._asdict()) for reminder in history.reminders.values()],
        "metadata": history.metadata,
        "gated": history.gated,
        "permits": history.permits,
        "children": [spawn.data() for spawn in history.children.values()],
        "completed_children": list[Json](sorted(history.completed_children)),
        "promises": [{"seq": seq, "turn": turn.data()} for seq, turn in history.promises.items()],
        "unreachable": [lost.data() for lost in history.unreachable.values()],
        "dispatched": history.dispatched,
        "applied": max(history.applied, last_applied(history.promises, history.dispatched)),
        "dispatched_of": dict[str, Json](sorted(dispatched_of.items())),
        "senders": list[Json](sorted(history.senders)),
        "from_user": list[Json](sorted(history.from_user - known_ids)),
        "known_ids": history.has_known_ids or bool(known_ids),
        "ids": list[Json](sorted(ids)),
        "controls": list[Json](sorted(controls)),
    }


def take_snapshot(history: History, data: JsonObject) -> None:
    """Replace the state of a session by that of a snapshot.

    Raises ``KeyError`` or ``ValueError`` for foreign data.
    """
    if int(str(data["format"])) > SNAPSHOT_FORMAT:
        raise ValueError(f"format={data['format']}, known is format={SNAPSHOT_FORMAT}")
    session, agent, presentations, subscriptions, history.metadata = objects(
        [
            data[name] or {}
            for name in ("session", "agent", "presentations", "subscriptions", "metadata")
        ]
    )
    history.session = SessionFacts.from_data(session) if session else None
    history.agent = AgentFacts.from_data(agent) if agent else None
    history.identity = str(data["identity"])
    history.turn_count = int(str(data["turn_count"]))
    history.last_turns = deque(strings(data["last_turns"]), LAST_TURNS)
    history.exchanges.clear()
    pending = [Message.from_data(message) for message in objects(data["pending"])]
    history.pending = {message.message_id: message for message in pending}
    history.presentations = {key: int(str(count)) for key, count in presentations.items()}
    history.open_turns = {
        str(turn["turn_id"]): OpenTurn.from_data(turn) for turn in objects(data["open_turns"])
    }
    history.retry_of = optional_text(data["retry_of"])
    history.subscriptions = {key: str(target) for key, target in subscriptions.items()}
    reminders = [Reminder.from_data(reminder) for reminder in objects(data["reminders"])]
    history.reminders = {reminder.reminder_id: reminder for reminder in reminders}
    history.gated, history.permits = bool(data["gated"]), int(str(data["permits"]))
    _take_promises(history, data)


def _take_promises(history: History, data: JsonObject) -> None:
    """Take the promises of a snapshot, and the ids of those of others."""
    children = [Spawn.from_data(spawn) for spawn in objects(data["children"])]
    history.children = {spawn.session_id: spawn for spawn in children}
    history.completed_children = set(strings(data["completed_children"]))
    history.promises = {
        int(str(promise["seq"])): TurnComplete.from_data(*objects([promise["turn"]]))
        for promise in objects(data["promises"])
    }
    unreachable = [Unreachable.from_data(lost) for lost in objects(data["unreachable"])]
    history.unreachable = {lost.message.message_id: lost for lost in unreachable}
    (dispatched_of,) = objects([data["dispatched_of"]])
    history.dispatched_of = {key: int(str(mark)) for key, mark in dispatched_of.items()}
    history.dispatched = int(str(data["dispatched"]))
    history.applied = int(str(data["applied"]))
    history.sources.clear()
    history.senders = set(strings(data["senders"]))
    history.from_user = set(strings(data["from_user"]))
    history.has_known_ids = bool(data["known_ids"])
    history.enqueued = {*history.from_user, *history.pending, *strings(data["ids"])}
    history.controls = set(strings(data["controls"]))
