"""The laws of delivery: each outbox entry of a line has arrived in its log.

They implement the table "The outbox" of ``docs/runtime.md``. Apply them after a recovery and
when all work has settled; in a running system an effect may be on its way. ``session_state``
ensures that no effect arrives twice.
"""

from __future__ import annotations

from oracles.runtime.log_records import (
    SENT_KINDS,
    ControlRecord,
    MessageRecord,
    SpawnRecord,
    TurnRecord,
)
from oracles.runtime.message_laws import gets_error, receiver_of_error
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.violations import (
    ForbiddenControl,
    ForbiddenRecipient,
    LateReminder,
    LostControl,
    LostErrorMessage,
    LostMessage,
    LostNotice,
    LostSpawn,
    PrematureWatermark,
    UnreportedTurnLoss,
)
from oracles.violation import Reordered


def check_delivered(snapshot: RootSnapshot) -> None:
    """Require that messages, children, controls, notices and errors have arrived."""
    for state in snapshot.judged:
        _check_outbox(snapshot, state)
        _check_spawns(snapshot, state)
        # Most agents have none of these effects.
        if state.controls:
            _check_controls(snapshot, state)
        if state.subscriptions:
            _check_notices(snapshot, state)
        for key in (*state.returned, *state.dead):
            original = state.enqueued[key]
            if gets_error(original, state):
                _check_error(snapshot, original)
    _check_control_order(snapshot)


def check_watermarks(snapshot: RootSnapshot, checked: dict[str, int]) -> None:
    """Require that the outboxes up to each watermark are dispatched, which is so at any time.

    ``checked`` has the watermark of each log that was checked before, and is updated.
    """
    for state in snapshot.judged:
        before = checked.get(state.path, 0)
        if state.dispatched <= before:
            continue
        for turn in reversed(state.turns.values()):
            if turn.seq <= before:
                break
            if turn.seq <= state.dispatched:
                _check_dispatched(snapshot, state, turn)
        checked[state.path] = state.dispatched


def _check_dispatched(snapshot: RootSnapshot, state: SessionState, turn: TurnRecord) -> None:
    entries: list[tuple[str, str, MessageRecord | SpawnRecord | ControlRecord]] = [
        *((message.recipient, message.message_id, message) for message in turn.outbox),
        *((spawn.agent_id, spawn.bootstrap_id, spawn) for spawn in turn.spawned),
        *((control.target, control.control_id, control) for control in turn.controls),
    ]
    for owner, key, entry in entries:
        target = snapshot.state_of(owner)
        if target is None and snapshot.excused:
            continue
        if target is not None:
            if target.session_id in snapshot.excused or target.ended:
                continue
            if key in target.enqueued or key in target.applied_controls:
                continue
        raise PrematureWatermark(
            "a turn says that the outbox of an earlier line is dispatched, and it is not",
            path=state.path, dispatched=state.dispatched, seq=turn.seq, entry=entry,
        )  # fmt: skip


def check_lost_turns(snapshot: RootSnapshot) -> None:
    """Require after a recovery that recovery notices name all turns that a crash interrupted."""
    for state in snapshot.judged:
        if state.ended or not state.open_starts:
            continue
        reported = {
            turn_id
            for notice in state.recovery_notices.values()
            for turn_id in notice.payload["lost_turns"]
        }
        missing = [turn_id for turn_id in state.open_starts if turn_id not in reported]
        if missing:
            raise UnreportedTurnLoss(
                "a crash interrupted turns of a living agent that no recovery notice names",
                path=state.path, expected=list(state.open_starts), missing=missing,
            )  # fmt: skip


def check_reminders(snapshot: RootSnapshot, now_ns: int) -> None:
    """Require when all work has settled that due reminders were shown; ``now_ns`` since 1970.

    A reminder that has failed too often was reported to USER instead. A gated agent is excepted.
    """
    for state in snapshot.judged:
        if state.ended or state.gate.closed:
            continue
        for key in state.active_reminders:
            reminder = state.reminders[key]
            if reminder.due_ns > now_ns or f"{key}.dead" in snapshot.user.enqueued:
                continue
            raise LateReminder(
                "a reminder is due and was not shown",
                path=state.path, reminder=reminder, now_ns=now_ns,
            )  # fmt: skip


def _check_outbox(snapshot: RootSnapshot, state: SessionState) -> None:
    for key, (_, message) in state.sent.items():
        target = snapshot.state_of(message.recipient)
        if target is None:
            if not snapshot.excused:
                raise ForbiddenRecipient(
                    "a committed turn sent a message to an agent that never existed",
                    message=message,
                )
            continue
        if key in target.enqueued or target.session_id in snapshot.excused:
            continue
        if not target.ended:
            raise LostMessage(
                "a committed turn sent a message, and the log of its recipient lacks it",
                message=message, sent_in=state.path, missing_in=target.path,
            )  # fmt: skip
        if message.kind in SENT_KINDS:
            _check_error(snapshot, message)


def _check_error(snapshot: RootSnapshot, original: MessageRecord) -> None:
    """Require that the error about a message that failed has arrived, or its receiver has ended."""
    receiver = snapshot.state_of(receiver_of_error(original))
    if receiver is None or receiver.ended or receiver.session_id in snapshot.excused:
        return
    if f"{original.message_id}.error" not in receiver.enqueued:
        raise LostErrorMessage(
            "a message is dead, returned or undeliverable, and there is no error about it",
            message=original, missing=f"{original.message_id}.error", missing_in=receiver.path,
        )  # fmt: skip


def _check_spawns(snapshot: RootSnapshot, state: SessionState) -> None:
    for spawn in state.bootstraps.values():
        if spawn.session_id in snapshot.excused:
            continue
        child = snapshot.sessions.get(spawn.session_id)
        if child is None or child.state.agent is None:
            raise LostSpawn(
                "a committed turn spawned a child, and the child does not exist",
                spawn=spawn, parent=state.path,
            )  # fmt: skip
        if spawn.bootstrap_id not in child.state.enqueued:
            raise LostSpawn(
                "a committed turn spawned a child, and the child lacks its bootstrap message",
                spawn=spawn, missing_in=child.state.path,
            )  # fmt: skip


def _check_controls(snapshot: RootSnapshot, state: SessionState) -> None:
    for key, control in state.controls.items():
        target = snapshot.agents.get(control.target)
        if target is None:
            if not snapshot.excused:
                raise ForbiddenControl(
                    "a committed turn controls an agent that never existed",
                    control=control, path=state.path,
                )  # fmt: skip
            continue
        if target.session_id in snapshot.excused:
            continue
        if key not in target.applied_controls and not target.ended:
            raise LostControl(
                "a committed turn ordered a control, and the log of its target lacks it",
                control=control, ordered_in=state.path, missing_in=target.path,
            )  # fmt: skip


def _check_control_order(snapshot: RootSnapshot) -> None:
    """Require that a child applied its parent's controls in the order of the parent's lines."""
    for state in snapshot.agents.values():
        if len(state.controls) < 2:
            continue
        last: dict[str, int] = {}
        for key, control in state.controls.items():
            target = snapshot.agents.get(control.target)
            applied = target.applied_controls.get(key) if target else None
            if applied is None:
                continue
            if applied[0] < last.get(control.target, 0):
                raise Reordered(
                    "a child applied a control before one that was ordered earlier",
                    control=control, ordered_in=state.path, seq=applied[0],
                )  # fmt: skip
            last[control.target] = applied[0]


def _check_notices(snapshot: RootSnapshot, state: SessionState) -> None:
    if state.ended:
        return
    for key, subscription in state.subscriptions.items():
        target = snapshot.agents.get(subscription.target)
        if target is None or not target.ended or key in state.unsubscribed:
            continue
        if f"{key}.notice" not in state.enqueued:
            raise LostNotice(
                "an agent has ended, and the log of a subscriber lacks the notice",
                subscription=subscription, missing_in=state.path,
            )  # fmt: skip
