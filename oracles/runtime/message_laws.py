"""The laws of messages in a log: each one has a cause, is unchanged, and is in order.

They apply at any time, because the line that causes a message is durable before the message is
enqueued. ``shadow_operator`` checks the messages of the operator. Messages of one sender to
one recipient are in the order in which they were sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from oracles.runtime.log_records import RUNTIME, SENT_KINDS, USER, MessageRecord
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.violations import DuplicateCompletion, ForbiddenRecipient
from oracles.violation import Phantom, Reordered, Resurrected, TornRecord

_Check = Callable[[RootSnapshot, SessionState, MessageRecord], None]

_SYSTEM_PAYLOAD: Final = {"notice", "v", "downtime_ns", "lost_turns", "pending"}
_REPORTS: Final = {
    "trigger": (
        "dead", "trigger_id", ("FAILED", "DEAD"),
        {"source", "key", "session_id", "fire_at", "attempts", "reason"},
    ),
    "activity": (
        "uncertain", "activity_id", ("UNCERTAIN",), {"action", "session_id", "attempts", "reason"},
    ),
}  # fmt: skip
"""Suffix, member with the id, states and other members of each notice to USER."""
_OUTCOME_ID: Final = re.compile(r"\.decided|\.result(\.[0-9]+\.[0-9]+)?")
"""Behind the key of the activity; with numbers if a person has let it be performed again."""
_OUTCOME: Final = {
    "activity_id", "action", "status", "provider_ref", "result", "reason", "decided_by",
}  # fmt: skip
_UNREAD_OUTCOME: Final = ("activity_id", "action", "status")
"""The members of an outcome that the error about it has as well."""


def check_messages(snapshot: RootSnapshot) -> None:
    """Require that each enqueued message was sent, with this content and in this order."""
    for state in snapshot.judged_logs:
        last: dict[str, tuple[int, int]] = {}
        for message in state.enqueued.values():
            kind, sender = message.kind, message.sender
            if kind not in SENT_KINDS:
                _CHECKS[kind](snapshot, state, message)
                continue
            if sender == USER:
                continue
            author = _author(snapshot, message)
            if author is None:
                continue
            order = _check_sent(author, message)
            if order < last.get(sender, (-1, -1)):
                raise Reordered(
                    "a message was enqueued after a later one of the same sender",
                    path=state.path, message=message,
                )  # fmt: skip
            last[sender] = order


def check_recipients(snapshot: RootSnapshot) -> None:
    """Require that turns send only permitted messages, and only to permitted recipients."""
    for state in snapshot.judged:
        responses = 0
        for _, message in state.sent.values():
            if message.sender != state.agent_id:
                raise Phantom(
                    "a turn sent a message in the name of another agent",
                    expected=state.agent_id, actual=message.sender, message=message,
                )  # fmt: skip
            if message.kind not in SENT_KINDS:
                raise Phantom(
                    "a turn sent a message of a kind that only the runtime sends", message=message
                )
            responses += message.kind == "response"
            _check_recipient(snapshot, state, message)
        if responses != (state.ended == "completed"):
            raise DuplicateCompletion(
                "the number of responses of an agent is not the number of its completions",
                path=state.path, ended=state.ended, responses=responses,
            )  # fmt: skip


def gets_error(original: MessageRecord, target: SessionState) -> bool:
    """Return whether an error answers this message once it is dead, returned or undeliverable."""
    if original.kind in ("activity", "bootstrap"):
        return original.message_id in target.dead
    return original.kind in SENT_KINDS


def receiver_of_error(original: MessageRecord) -> str:
    """Return the agent id, or USER, that gets the error: the sender, if it is not the runtime."""
    return USER if original.kind == "activity" else original.sender


def _author(snapshot: RootSnapshot, message: MessageRecord) -> SessionState | None:
    """Return the state of the sender, or None if damage excuses it."""
    author = snapshot.agents.get(message.sender)
    if author is None and not snapshot.excused:
        raise Phantom("the sender of a message does not exist", message=message)
    if author is None or author.session_id in snapshot.excused:
        return None
    return author


def _check_sent(author: SessionState, message: MessageRecord) -> tuple[int, int]:
    found = author.sent.get(message.message_id)
    if found is None:
        raise Phantom(
            "a message was enqueued that no committed turn of its sender sent", message=message
        )
    order, sent = found
    if sent != message:
        raise TornRecord(
            "a message was enqueued with other contents than it was sent with",
            sent=sent, enqueued=message,
        )  # fmt: skip
    return order


def _check_recipient(snapshot: RootSnapshot, state: SessionState, message: MessageRecord) -> None:
    assert state.agent is not None
    own = state.agent.parent_session_id
    if message.recipient == USER:
        if own is not None:
            raise ForbiddenRecipient(
                "an agent that is not a root sent a message to USER", message=message
            )
        return
    target = snapshot.agents.get(message.recipient)
    if target is None or target.agent is None:
        return
    other, parent_of_other = target.session_id, target.agent.parent_session_id
    is_sibling = own is not None and parent_of_other == own
    is_near = other == own or parent_of_other == state.session_id or is_sibling
    if target is state or not is_near:
        raise ForbiddenRecipient(
            "a turn sent a message to an agent other than its parent, children and siblings",
            message=message,
        )
    if message.kind == "response" and other != own:
        raise ForbiddenRecipient(
            "a response was sent to an agent other than the parent",
            expected=own, actual=other, message=message,
        )  # fmt: skip


def _check_bootstrap(snapshot: RootSnapshot, state: SessionState, message: MessageRecord) -> None:
    author = _author(snapshot, message)
    if author is None:
        return
    spawn = author.bootstraps.get(message.message_id)
    if spawn is None or spawn.agent_id != state.agent_id:
        raise Phantom(
            "a bootstrap message was enqueued that no committed turn requires",
            message=message, spawn=spawn,
        )  # fmt: skip
    if message.payload != spawn.instructions or message.reply_to is not None:
        raise TornRecord(
            "a bootstrap message differs from the instructions of its spawn",
            expected=spawn.instructions, actual=message.payload, reply_to=message.reply_to,
        )  # fmt: skip
    first = next(iter(state.enqueued))
    if first != message.message_id:
        raise Reordered(
            "the first message of a child is not its bootstrap message",
            expected=message.message_id, actual=first,
        )  # fmt: skip


def _check_error(snapshot: RootSnapshot, state: SessionState, message: MessageRecord) -> None:
    about = message.reply_to or ""
    payload = message.payload
    if (
        message.message_id != f"{about}.error"
        or not isinstance(payload, dict)
        or payload.get("message_id") != about
        or payload.keys() - _UNREAD_OUTCOME != {"reason", "message_id"}
    ):
        raise TornRecord(
            "an error message is malformed", expected_id=f"{about}.error", message=message
        )
    target = _author(snapshot, message)
    if target is None:
        return
    original = target.enqueued.get(about)
    failed = about in target.returned or about in target.dead
    if original is None:
        _, original = state.sent.get(about, (None, None))
        failed = bool(target.ended) and original is not None
    if not failed or original is None or receiver_of_error(original) != message.recipient:
        raise Phantom(
            "an error message answers a message that did not fail",
            message=message, original=original,
        )  # fmt: skip
    if original.recipient != message.sender or not gets_error(original, target):
        raise Phantom(
            "an error message answers a message that gets none", message=message, original=original
        )
    outcome = original.payload if original.kind == "activity" else {}
    expected = {name: outcome[name] for name in _UNREAD_OUTCOME if name in outcome}
    actual = {name: payload[name] for name in _UNREAD_OUTCOME if name in payload}
    if actual != expected:
        raise TornRecord(
            "an error message has another outcome than the message that it answers",
            expected=expected, actual=actual, message=message,
        )  # fmt: skip


def _check_notice(snapshot: RootSnapshot, state: SessionState, message: MessageRecord) -> None:
    subscription_id = message.message_id.removesuffix(".notice")
    subscription = state.subscriptions.get(subscription_id)
    if subscription is None or subscription.target != message.sender:
        raise Phantom(
            "a notice was enqueued without a subscription to its sender",
            message=message, subscription=subscription,
        )  # fmt: skip
    target = _author(snapshot, message)
    if target is None:
        return
    if not target.ended or target.agent is None:
        raise Phantom("a notice says that a living agent has ended", message=message)
    expected = {"event": "terminated", "agent_id": target.agent_id, "name": target.agent.name}
    if message.payload != expected or message.message_id != f"{subscription_id}.notice":
        raise TornRecord(
            "a notice is malformed", expected_id=f"{subscription_id}.notice",
            expected=expected, actual=message.payload,
        )  # fmt: skip
    _check_not_revoked(state, message, state.unsubscribed.get(subscription_id), "unsubscribed")


def _check_reminder(snapshot: RootSnapshot, state: SessionState, message: MessageRecord) -> None:
    del snapshot
    reminder = state.reminders.get(message.message_id)
    if reminder is None or message.sender != state.agent_id:
        raise Phantom(
            "a reminder was enqueued that no committed turn of its agent set",
            message=message, reminder=reminder,
        )  # fmt: skip
    if message.payload != reminder.payload:
        raise TornRecord(
            "a reminder has another payload than it was set with",
            expected=reminder.payload, actual=message.payload,
        )  # fmt: skip
    _check_not_revoked(state, message, state.cancelled.get(message.message_id), "cancelled it")


def _check_not_revoked(
    state: SessionState, message: MessageRecord, revoked_seq: int | None, how: str
) -> None:
    enqueued_seq = state.positions[message.message_id]
    if revoked_seq is not None and revoked_seq < enqueued_seq:
        raise Resurrected(
            f"a {message.kind} was enqueued after a committed turn {how}",
            message=message, revoked_seq=revoked_seq, enqueued_seq=enqueued_seq,
        )  # fmt: skip


def _check_report(message: MessageRecord) -> None:
    """Require that a report to USER names the stopped trigger or activity, and has the id of it."""
    payload = message.payload if isinstance(message.payload, dict) else {}
    suffix, named, states, members = _REPORTS.get(payload.get("notice", ""), ("", "", (), set()))
    if (
        message.sender != RUNTIME
        or payload.keys() != {"notice", "v", "status", named, *members}
        or payload["v"] != 1
        or payload["status"] not in states
        or not message.message_id.startswith(f"{payload[named]}.{suffix}")
    ):
        raise TornRecord("a report to USER is malformed", message=message)


def _check_activity(snapshot: RootSnapshot, state: SessionState, message: MessageRecord) -> None:
    """Require that a turn of the agent has asked for the activity of an outcome."""
    del snapshot
    payload = message.payload if isinstance(message.payload, dict) else {}
    key = payload.get("activity_id")
    requested = {each.key: each for turn in state.turns.values() for each in turn.activities}
    if key not in requested:
        raise Phantom("an outcome was enqueued of an activity that no turn asked for", key=key)
    if (
        message.sender != RUNTIME
        or payload.keys() != _OUTCOME
        or payload["action"] != requested[key].action
        or payload["status"] not in ("DONE", "FAILED", "UNCERTAIN")
        or _OUTCOME_ID.fullmatch(message.message_id.removeprefix(key)) is None
    ):
        raise TornRecord("the outcome of an activity is malformed", message=message)


def _check_system(snapshot: RootSnapshot, state: SessionState, message: MessageRecord) -> None:
    del snapshot
    if state.is_user:
        _check_report(message)
        return
    payload = message.payload
    if (
        message.sender != RUNTIME
        or not isinstance(payload, dict)
        or payload.keys() != _SYSTEM_PAYLOAD
        or (payload["notice"], payload["v"]) != ("recovery", 1)
        or not payload["lost_turns"]
        or message.message_id != f"{payload['lost_turns'][-1]}.lost"
    ):
        raise TornRecord("a recovery notice is malformed", message=message)
    for turn_id in payload["lost_turns"]:
        if turn_id not in state.open_starts:
            raise Phantom(
                "a recovery notice names a turn that was not lost",
                turn_id=turn_id, open_turns=list(state.open_starts), message=message,
            )  # fmt: skip


_CHECKS: Final[dict[str, _Check]] = {
    "activity": _check_activity,
    "bootstrap": _check_bootstrap,
    "error": _check_error,
    "notice": _check_notice,
    "reminder": _check_reminder,
    "system": _check_system,
}
