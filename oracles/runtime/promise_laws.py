"""V-4, the way there: what lines demand elsewhere is there, once a recovery has ended.

Between recoveries a promise may be under way, so a running system is not judged by these,
except when all is quiet. That nothing is there twice, the states see to.
"""

from __future__ import annotations

from collections.abc import Collection

from oracles.runtime.log_records import SENT_KINDS, MessageRecord
from oracles.runtime.message_laws import is_told
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.violations import (
    ForbiddenRecipient,
    LateReminder,
    LostControl,
    LostErrorMessage,
    LostMessage,
    LostNotice,
    LostSpawn,
    UnreportedTurnLoss,
)
from oracles.violation import Reordered, TornRecord


def check_promises(snapshot: RootSnapshot, excused: Collection[str] = ()) -> None:
    """Raise the first promise that is not kept."""
    for state in snapshot.agents.values():
        if state.session_id in excused:
            continue
        _check_outbox(snapshot, state, excused)
        _check_spawns(snapshot, state, excused)
        # Few agents have ordered anything of these.
        if state.controls:
            _check_controls(snapshot, state, excused)
        if state.subscriptions:
            _check_notices(snapshot, state)
        for key in (*state.returned, *state.dead):
            original = state.enqueued[key]
            if is_told(original, state):
                _check_told(snapshot, original, excused)
    _check_control_order(snapshot)


def check_lost_turns(snapshot: RootSnapshot, excused: Collection[str] = ()) -> None:
    """After a recovery every living agent has been told of each turn that a crash took."""
    for state in snapshot.agents.values():
        if state.ended or state.session_id in excused or not state.open_starts:
            continue
        told = {turn for notice in state.notices.values() for turn in notice.payload["lost_turns"]}
        unrecovered = [turn_id for turn_id in state.open_starts if turn_id not in told]
        if unrecovered:
            raise UnreportedTurnLoss("a lost turn was not told", path=state.path, turns=unrecovered)


def check_due(snapshot: RootSnapshot, now_ns: int, excused: Collection[str] = ()) -> None:
    """When all is quiet, every reminder that is due has come; ``now_ns`` since 1970."""
    for state in snapshot.agents.values():
        if state.ended or state.session_id in excused:
            continue
        for key, reminder in state.reminders.items():
            if (
                reminder.due_ns <= now_ns
                and key not in state.enqueued
                and key not in state.cancelled
            ):
                raise LateReminder(
                    "a reminder is due and has not come", path=state.path, reminder=reminder,
                    now_ns=now_ns,
                )  # fmt: skip


def _check_outbox(snapshot: RootSnapshot, state: SessionState, excused: Collection[str]) -> None:
    for key, (_, message) in state.sent.items():
        target = snapshot.state_of(message.recipient)
        if target is None:
            if not excused:
                raise ForbiddenRecipient("a turn addresses somebody who never was", message=message)
            continue
        if key in target.enqueued or target.session_id in excused:
            continue
        if not target.ended:
            raise LostMessage("a message was sent and did not arrive", message=message)
        if message.kind in SENT_KINDS:
            _check_told(snapshot, message, excused)


def _check_told(snapshot: RootSnapshot, original: MessageRecord, excused: Collection[str]) -> None:
    """The sender of a message that failed was told, or has ended itself."""
    sender = snapshot.state_of(original.sender)
    if sender is None or sender.ended or sender.session_id in excused:
        return
    if f"{original.message_id}.error" not in sender.enqueued:
        raise LostErrorMessage("a message failed, and its sender was not told", message=original)


def _check_spawns(snapshot: RootSnapshot, state: SessionState, excused: Collection[str]) -> None:
    for spawn in state.bootstraps.values():
        if spawn.session_id in excused:
            continue
        child = snapshot.sessions.get(spawn.session_id)
        if child is None or child.state.agent is None:
            raise LostSpawn("a child was spawned and is not there", spawn=spawn)
        if spawn.bootstrap_id not in child.state.enqueued:
            raise LostSpawn("a child lacks its first message", spawn=spawn)


def _check_controls(snapshot: RootSnapshot, state: SessionState, excused: Collection[str]) -> None:
    for key, control in state.controls.items():
        target = snapshot.agents.get(control.target)
        if target is None:
            if not excused:
                raise ForbiddenRecipient("a turn controls somebody who never was", control=control)
            continue
        if target.session_id in excused:
            continue
        if key not in target.obeyed and not target.ended:
            raise LostControl("a control did not reach its agent", control=control)


def _check_control_order(snapshot: RootSnapshot) -> None:
    """A parent's controls reach a child in the order in which they were given (R3)."""
    for state in snapshot.agents.values():
        if len(state.controls) < 2:
            continue
        last: dict[str, int] = {}
        for key, control in state.controls.items():
            target = snapshot.agents.get(control.target)
            obeyed = target.obeyed.get(key) if target else None
            if obeyed is None:
                continue
            if obeyed[0] < last.get(control.target, 0):
                raise Reordered("controls overtook each other", control=control)
            last[control.target] = obeyed[0]


def _check_notices(snapshot: RootSnapshot, state: SessionState) -> None:
    if state.ended:
        return
    for key, subscription in state.subscriptions.items():
        target = snapshot.agents.get(subscription.target)
        if target is None or not target.ended or key in state.unsubscribed:
            continue
        if f"{key}.notice" not in state.enqueued:
            raise LostNotice(
                "an agent ended and a subscriber was not told", subscription=subscription,
                subscriber=state.path,
            )  # fmt: skip


def check_controls_demanded(snapshot: RootSnapshot, excused: Collection[str] = ()) -> None:
    """Raise when an agent obeyed what no committed turn of its parent has ordered."""
    for state in snapshot.agents.values():
        for key, (_, op, by) in state.obeyed.items():
            master = snapshot.agents.get(by)
            if master is None and not excused:
                raise ForbiddenRecipient(
                    "an agent obeyed somebody who never was", path=state.path, by=by
                )
            if master is None or master.session_id in excused:
                continue
            control = master.controls.get(key)
            if control is None or control.target != state.agent_id:
                raise ForbiddenRecipient(
                    "an agent obeyed what nobody ordered", path=state.path, control=key
                )
            if control.op != op:
                raise TornRecord("a control is not what was ordered", control=control, obeyed=op)
            assert state.agent is not None
            if state.agent.parent_session_id != master.session_id:
                raise ForbiddenRecipient("an agent was controlled by a stranger", path=state.path)
