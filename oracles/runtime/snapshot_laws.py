"""The law of snapshots: ``log.snapshot`` has the state that the lines before it determine.

The lines before a snapshot stay readable, so the shadow continues from them and never from the
snapshot itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Protocol

from oracles.runtime.gate_state import GateState
from oracles.runtime.log_records import (
    USER,
    AgentRecord,
    MessageRecord,
    SpawnRecord,
    StartRecord,
    SubscriptionRecord,
    TurnRecord,
)
from oracles.runtime.violations import WrongSnapshot

LAST_TURNS: Final = 16


class StateBefore(Protocol):
    """The state of the lines before a snapshot; ``SessionState`` is one."""

    created: Mapping[str, Any]
    agent: AgentRecord | None
    enqueued: dict[str, MessageRecord]
    pending: dict[str, None]
    presentations: Counter[str]
    open_starts: dict[str, StartRecord]
    turns: dict[str, TurnRecord]
    gate: GateState
    applied_controls: dict[str, tuple[int, str, str]]
    metadata: dict[str, Any]
    bootstraps: dict[str, SpawnRecord]
    subscriptions: dict[str, SubscriptionRecord]
    unsubscribed: dict[str, int]
    recovery_notices: dict[str, MessageRecord]
    dispatched: int

    @property
    def active_reminders(self) -> list[str]:
        """The reminders that are still to come."""
        ...


def check_snapshot(state: StateBefore, data: Mapping[str, Any]) -> set[str]:
    """Compare the data of a snapshot with the state of the lines before it.

    Ids of entries that are dispatched may be missing; those of the operator only if ``known_ids``
    says that the database has them. Returns the sessions of children that are missing; they must
    have been collected.
    """
    expected = _members(state)
    actual = {name: data[name] for name in expected}
    actual["reminders"] = [reminder["reminder_id"] for reminder in data["reminders"]]
    actual["promises"] = [entry["seq"] for entry in data["promises"]]
    wrong = [name for name, value in expected.items() if actual[name] != value]
    if wrong:
        raise WrongSnapshot(
            f"a snapshot differs from the lines before it in {', '.join(wrong)}",
            expected={name: expected[name] for name in wrong},
            actual={name: actual[name] for name in wrong},
        )  # fmt: skip
    if state.gate.closed and data["permits"] < state.gate.unused_permits:
        raise WrongSnapshot(
            "a snapshot has fewer permits than the lines before it",
            expected=state.gate.unused_permits, actual=data["permits"],
        )  # fmt: skip
    _check_ids(state, data)
    _check_open_turns(state, data)
    children = {spawn.session_id for spawn in state.bootstraps.values()}
    kept = {spawn["session_id"] for spawn in data["children"]}
    if kept - children:
        raise WrongSnapshot(
            "a snapshot has children that no turn spawned", invented=kept - children
        )
    return children - kept


def _members(state: StateBefore) -> dict[str, Any]:
    turns = list(state.turns)
    return {
        "session": {
            name: state.created[name] for name in ("provider", "model", "system_prompt")
        } if state.created else None,
        "agent": None if state.agent is None else dict(state.agent._asdict()),
        "turn_count": len(turns),
        "last_turns": turns[-LAST_TURNS:],
        "pending": [dict(state.enqueued[key]._asdict()) for key in state.pending],
        "subscriptions": {
            key: subscription.target
            for key, subscription in state.subscriptions.items()
            if key not in state.unsubscribed and f"{key}.notice" not in state.enqueued
        },
        "reminders": state.active_reminders,
        "metadata": state.metadata,
        "gated": state.gate.closed,
        "promises": [
            turn.seq
            for turn in state.turns.values()
            if turn.seq > state.dispatched
            and (turn.outbox or turn.spawned or turn.controls or turn.has_state_entries)
        ],
        "dispatched": state.dispatched,
    }  # fmt: skip


def _check_ids(state: StateBefore, data: Mapping[str, Any]) -> None:
    """Require that every id has occurred, and that each id of the operator is kept somewhere."""
    known = {*state.enqueued, *state.applied_controls}
    kept = {*data["ids"], *data["controls"], *data["from_user"]}
    said = {key for key, message in state.enqueued.items() if message.sender == USER}
    forgotten = set[str]() if data["known_ids"] else said - kept
    if kept - known or forgotten:
        raise WrongSnapshot(
            "a snapshot keeps ids that were never here, or forgets those of the operator",
            invented=sorted(kept - known), forgotten=sorted(forgotten),
        )  # fmt: skip


def given_up_turns(state: StateBefore, data: Mapping[str, Any]) -> list[StartRecord]:
    """Return the turns without an end that a snapshot omits.

    They have failed, and the disk has refused their ``turn.failed`` lines.
    """
    kept = {turn["turn_id"] for turn in data["open_turns"]}
    for notice in state.recovery_notices.values():
        kept.update(notice.payload["lost_turns"])
    return [start for turn_id, start in state.open_starts.items() if turn_id not in kept]


def _check_open_turns(state: StateBefore, data: Mapping[str, Any]) -> None:
    """Require that every open turn was started, and that the presentations agree.

    Presentations by turns that were given up may be missing.
    """
    invented = [
        turn["turn_id"] for turn in data["open_turns"] if turn["turn_id"] not in state.open_starts
    ]
    uncounted = Counter(key for start in given_up_turns(state, data) for key in start.presented)
    wrong = [
        key
        for key in state.pending
        if not 0 <= state.presentations[key] - data["presentations"].get(key, 0) <= uncounted[key]
    ]
    if invented or wrong or data["presentations"].keys() - state.pending.keys():
        raise WrongSnapshot(
            "a snapshot has other open turns or presentations than the lines before it",
            invented=invented, messages=wrong, presentations=data["presentations"],
        )  # fmt: skip
