"""The data of ``log.snapshot``: the state of a session as one line; ``History`` reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from system.agents.history import SNAPSHOT_FORMAT, History
from system.agents.session_data import last_applied
from system.ports import Json, JsonObject


def snapshot_data(
    history: History, ids: Iterable[str], controls: Iterable[str], dispatched_of: Mapping[str, int],
    known_ids: AbstractSet[str],
) -> JsonObject:  # fmt: skip
    """Return the data of ``log.snapshot``: the state of a session without the exchanges.

    ``ids`` and ``controls`` are the ids of entries that may be dispatched again.
    ``dispatched_of`` has a line number for each session: the entries that the lines of that
    session up to this number have for this log are in it, whether the ids are kept or not.
    ``known_ids`` are the ids in ``state.db``.
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
        "promises": [{"seq": seq, "turn": turn.data()} for seq, turn in history.outbox.items()],
        "unreachable": [lost.data() for lost in history.unreachable.values()],
        "dispatched": history.dispatched,
        "applied": max(history.applied, last_applied(history.outbox, history.dispatched)),
        "dispatched_of": dict[str, Json](sorted(dispatched_of.items())),
        "senders": list[Json](sorted(history.senders)),
        "from_user": list[Json](sorted(history.from_user - known_ids)),
        "known_ids": history.has_known_ids or bool(known_ids),
        "ids": list[Json](sorted(ids)),
        "controls": list[Json](sorted(controls)),
    }
