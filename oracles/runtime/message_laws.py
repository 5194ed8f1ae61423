"""V-4, the way back: every message in a log, and every child, was demanded by something.

Judged at every snapshot: what demands is durable before what is demanded, so it is always
there to be found. What the operator sent is the shadow's business. Per pair of sender and
recipient, messages stand in the order in which they were sent.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from oracles.runtime.log_records import RUNTIME, SENT_KINDS, USER, MessageRecord
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.violations import DuplicateCompletion, ForbiddenRecipient
from oracles.violation import Phantom, Reordered, Resurrected, TornRecord


def check_messages(snapshot: RootSnapshot, excused: Collection[str] = ()) -> None:
    """Raise when a message is there that nothing demands, or that is not as it was sent."""
    for state in (snapshot.user, *snapshot.agents.values()):
        if state.session_id in excused:
            continue
        last: dict[str, tuple[int, int]] = {}
        for message in state.enqueued.values():
            kind, sender = message.kind, message.sender
            if kind in SENT_KINDS:
                if sender == USER:
                    continue
                author = _author(snapshot, message, excused)
                if author is None:
                    continue
                order = _check_sent(author, message)
                if order < last.get(sender, (-1, -1)):
                    raise Reordered("messages of one sender overtook each other", message=message)
                last[sender] = order
            else:
                _CHECKS[kind](snapshot, state, message, excused)


def check_reach(snapshot: RootSnapshot, excused: Collection[str] = ()) -> None:
    """Raise when a turn addresses somebody whom its agent may not address."""
    for state in snapshot.agents.values():
        if state.session_id in excused:
            continue
        responses = 0
        for _, message in state.sent.values():
            if message.sender != state.agent_id:
                raise Phantom("a turn sends in the name of somebody else", message=message)
            if message.kind not in SENT_KINDS:
                raise Phantom("a turn sends what only the runtime may send", message=message)
            responses += message.kind == "response"
            _check_reach(snapshot, state, message)
        if responses != (state.ended == "completed"):
            raise DuplicateCompletion(
                "responses and completions are not one and one",
                path=state.path, responses=responses, ended=state.ended,
            )  # fmt: skip


def check_children(snapshot: RootSnapshot, excused: Collection[str] = ()) -> None:
    """Raise when there is a child that no committed turn has spawned."""
    for state in snapshot.agents.values():
        agent = state.agent
        assert agent is not None
        if agent.parent_session_id is None or agent.parent_session_id in excused:
            continue
        parent = snapshot.sessions[agent.parent_session_id].state
        spawns = parent.bootstraps.values()
        spawn = next((s for s in spawns if s.session_id == state.session_id), None)
        if spawn is None:
            raise Phantom("a child is there that no turn has spawned", agent=agent)
        actual = (agent.agent_id, agent.name, agent.instructions)
        opened = (state.created["provider"], state.created["model"])
        if actual != (spawn.agent_id, spawn.name, spawn.instructions) or opened != (
            spawn.provider,
            spawn.model,
        ):
            raise TornRecord("a child is not as it was spawned", agent=agent, spawn=spawn)


def _author(
    snapshot: RootSnapshot, message: MessageRecord, excused: Collection[str]
) -> SessionState | None:
    author = snapshot.agents.get(message.sender)
    if author is None and not excused:
        raise Phantom("a message of an agent that is not there", message=message)
    if author is None or author.session_id in excused:
        return None
    return author


def _check_sent(author: SessionState, message: MessageRecord) -> tuple[int, int]:
    found = author.sent.get(message.message_id)
    if found is None:
        raise Phantom("a message is there that no committed turn has sent", message=message)
    order, sent = found
    if sent != message:
        raise TornRecord("a message is not as it was sent", sent=sent, message=message)
    return order


def _check_reach(snapshot: RootSnapshot, state: SessionState, message: MessageRecord) -> None:
    assert state.agent is not None
    own = state.agent.parent_session_id
    if message.recipient == USER:
        if own is not None:
            raise ForbiddenRecipient("an agent below a root wrote to USER", message=message)
        return
    target = snapshot.agents.get(message.recipient)
    if target is None or target.agent is None:
        return
    related = target.agent.parent_session_id
    other = target.session_id
    is_near = other == own or related == state.session_id or (own is not None and related == own)
    if target is state or not is_near:
        raise ForbiddenRecipient("a turn addresses a stranger", message=message)
    if message.kind == "response" and other != own:
        raise ForbiddenRecipient(
            "a response went to somebody else than the parent", message=message
        )


def _check_bootstrap(
    snapshot: RootSnapshot, state: SessionState, message: MessageRecord, excused: Collection[str]
) -> None:
    author = _author(snapshot, message, excused)
    if author is None:
        return
    spawn = author.bootstraps.get(message.message_id)
    if spawn is None or spawn.agent_id != state.agent_id:
        raise Phantom("a bootstrap that no spawn demands", message=message)
    if message.payload != spawn.instructions or message.reply_to is not None:
        raise TornRecord("a bootstrap is not what was asked for", message=message, spawn=spawn)
    if next(iter(state.enqueued)) != message.message_id:
        raise Reordered("a child's first message is not its bootstrap", message=message)


def _check_error(
    snapshot: RootSnapshot, state: SessionState, message: MessageRecord, excused: Collection[str]
) -> None:
    about = message.reply_to or ""
    payload = message.payload
    if (
        message.message_id != f"{about}.error"
        or not isinstance(payload, dict)
        or payload.keys() != {"reason", "message_id"}
        or payload["message_id"] != about
    ):
        raise TornRecord("an error is not of its form", message=message)
    target = _author(snapshot, message, excused)
    if target is None:
        return
    original = target.enqueued.get(about)
    failed = about in target.returned or about in target.dead
    if original is None:
        _, original = state.sent.get(about, (None, None))
        failed = bool(target.ended) and original is not None
    if not failed or original is None or original.sender != message.recipient:
        raise Phantom("an error about a message that did not fail", message=message)
    if original.recipient != message.sender or not is_told(original, target):
        raise Phantom("an error that nobody is owed", message=message, original=original)


def _check_notice(
    snapshot: RootSnapshot, state: SessionState, message: MessageRecord, excused: Collection[str]
) -> None:
    subscription_id = message.message_id.removesuffix(".notice")
    subscription = state.subscriptions.get(subscription_id)
    if subscription is None or subscription.target != message.sender:
        raise Phantom("a notice that nobody subscribed to", message=message)
    target = _author(snapshot, message, excused)
    if target is None:
        return
    if not target.ended or target.agent is None:
        raise Phantom("a notice of an end that was none", message=message)
    owed = {"event": "terminated", "agent_id": target.agent_id, "name": target.agent.name}
    if message.payload != owed or message.message_id != f"{subscription_id}.notice":
        raise TornRecord("a notice is not of its form", message=message, expected=owed)
    gone = state.unsubscribed.get(subscription_id)
    if gone is not None and gone < state.positions[message.message_id]:
        raise Resurrected("a notice came after its subscription had gone", message=message)


def _check_reminder(
    snapshot: RootSnapshot, state: SessionState, message: MessageRecord, excused: Collection[str]
) -> None:
    del snapshot, excused
    reminder = state.reminders.get(message.message_id)
    if reminder is None or message.sender != state.agent_id:
        raise Phantom("a reminder that nobody asked for", message=message)
    if message.payload != reminder.payload:
        raise TornRecord("a reminder is not what was asked for", message=message)
    gone = state.cancelled.get(message.message_id)
    if gone is not None and gone < state.positions[message.message_id]:
        raise Resurrected("a reminder came after it had been cancelled", message=message)


def _check_system(
    snapshot: RootSnapshot, state: SessionState, message: MessageRecord, excused: Collection[str]
) -> None:
    del snapshot, excused
    payload = message.payload
    if (
        message.sender != RUNTIME
        or not isinstance(payload, dict)
        or payload.keys() != {"notice", "v", "downtime_ns", "lost_turns", "pending"}
        or (payload["notice"], payload["v"]) != ("recovery", 1)
        or not payload["lost_turns"]
        or message.message_id != f"{payload['lost_turns'][-1]}.lost"
    ):
        raise TornRecord("a recovery notice is not of its form", message=message)
    for turn_id in payload["lost_turns"]:
        if turn_id not in state.open_starts:
            raise Phantom("a turn is told to be lost that is not", message=message, turn=turn_id)


def is_told(original: MessageRecord, target: SessionState) -> bool:
    """Whether the sender of a message is told when it fails."""
    if original.kind == "bootstrap":
        return original.message_id in target.dead
    return original.kind in SENT_KINDS


_CHECKS: Final = {
    "bootstrap": _check_bootstrap,
    "error": _check_error,
    "notice": _check_notice,
    "reminder": _check_reminder,
    "system": _check_system,
}
