"""V-4, the way there: what lines demand elsewhere is there, once a recovery has ended.

Between recoveries a promise may be under way, so a running system is not judged by these,
except when all is quiet. That nothing is there twice, the folds see to.
"""

from __future__ import annotations

from collections.abc import Collection

from oracles.runtime.fact import SENT_KINDS, Message
from oracles.runtime.fold import Fold
from oracles.runtime.message_laws import is_told
from oracles.runtime.seen import Seen
from oracles.violation import (
    LateReminder,
    LostControl,
    LostMessage,
    LostSpawn,
    OutOfReach,
    Reordered,
    TornRecord,
    UntoldError,
    UntoldNotice,
    UntoldTurn,
)


def check_promises(seen: Seen, excused: Collection[str] = ()) -> None:
    """Raise the first promise that is not kept."""
    for fold in seen.agents.values():
        if fold.session_id in excused:
            continue
        _check_outbox(seen, fold, excused)
        _check_spawns(seen, fold, excused)
        # Few agents have ordered anything of these.
        if fold.controls:
            _check_controls(seen, fold, excused)
        if fold.subscriptions:
            _check_notices(seen, fold)
        for key in (*fold.returned, *fold.dead):
            original = fold.enqueued[key]
            if is_told(original, fold):
                _check_told(seen, original, excused)
    _check_control_order(seen)


def check_lost_turns(seen: Seen, excused: Collection[str] = ()) -> None:
    """After a recovery every living agent has been told of each turn that a crash took."""
    for fold in seen.agents.values():
        if fold.ended or fold.session_id in excused or not fold.open_starts:
            continue
        told = {turn for notice in fold.notices.values() for turn in notice.payload["lost_turns"]}
        untold = [turn_id for turn_id in fold.open_starts if turn_id not in told]
        if untold:
            raise UntoldTurn("a lost turn was not told", path=fold.path, turns=untold)


def check_due(seen: Seen, now_ns: int, excused: Collection[str] = ()) -> None:
    """When all is quiet, every reminder that is due has come; ``now_ns`` since 1970."""
    for fold in seen.agents.values():
        if fold.ended or fold.session_id in excused:
            continue
        for key, reminder in fold.reminders.items():
            if reminder.due_ns <= now_ns and key not in fold.enqueued and key not in fold.cancelled:
                raise LateReminder(
                    "a reminder is due and has not come", path=fold.path, reminder=reminder,
                    now_ns=now_ns,
                )  # fmt: skip


def _check_outbox(seen: Seen, fold: Fold, excused: Collection[str]) -> None:
    for key, (_, message) in fold.sent.items():
        target = seen.fold_of(message.recipient)
        if target is None:
            if not excused:
                raise OutOfReach("a turn addresses somebody who never was", message=message)
            continue
        if key in target.enqueued or target.session_id in excused:
            continue
        if not target.ended:
            raise LostMessage("a message was sent and did not arrive", message=message)
        if message.kind in SENT_KINDS:
            _check_told(seen, message, excused)


def _check_told(seen: Seen, original: Message, excused: Collection[str]) -> None:
    """The sender of a message that failed was told, or has ended itself."""
    sender = seen.fold_of(original.sender)
    if sender is None or sender.ended or sender.session_id in excused:
        return
    if f"{original.message_id}.error" not in sender.enqueued:
        raise UntoldError("a message failed, and its sender was not told", message=original)


def _check_spawns(seen: Seen, fold: Fold, excused: Collection[str]) -> None:
    for spawn in fold.bootstraps.values():
        if spawn.session_id in excused:
            continue
        child = seen.sessions.get(spawn.session_id)
        if child is None or child.fold.agent is None:
            raise LostSpawn("a child was spawned and is not there", spawn=spawn)
        if spawn.bootstrap_id not in child.fold.enqueued:
            raise LostSpawn("a child lacks its first message", spawn=spawn)


def _check_controls(seen: Seen, fold: Fold, excused: Collection[str]) -> None:
    for key, control in fold.controls.items():
        target = seen.agents.get(control.target)
        if target is None:
            if not excused:
                raise OutOfReach("a turn controls somebody who never was", control=control)
            continue
        if target.session_id in excused:
            continue
        if key not in target.obeyed and not target.ended:
            raise LostControl("a control did not reach its agent", control=control)


def _check_control_order(seen: Seen) -> None:
    """A parent's controls reach a child in the order in which they were given (R3)."""
    for fold in seen.agents.values():
        if len(fold.controls) < 2:
            continue
        last: dict[str, int] = {}
        for key, control in fold.controls.items():
            target = seen.agents.get(control.target)
            obeyed = target.obeyed.get(key) if target else None
            if obeyed is None:
                continue
            if obeyed[0] < last.get(control.target, 0):
                raise Reordered("controls overtook each other", control=control)
            last[control.target] = obeyed[0]


def _check_notices(seen: Seen, fold: Fold) -> None:
    if fold.ended:
        return
    for key, subscription in fold.subscriptions.items():
        target = seen.agents.get(subscription.target)
        if target is None or not target.ended or key in fold.unsubscribed:
            continue
        if f"{key}.notice" not in fold.enqueued:
            raise UntoldNotice(
                "an agent ended and a subscriber was not told", subscription=subscription,
                subscriber=fold.path,
            )  # fmt: skip


def check_controls_demanded(seen: Seen, excused: Collection[str] = ()) -> None:
    """Raise when an agent obeyed what no committed turn of its parent has ordered."""
    for fold in seen.agents.values():
        for key, (_, op, by) in fold.obeyed.items():
            master = seen.agents.get(by)
            if master is None and not excused:
                raise OutOfReach("an agent obeyed somebody who never was", path=fold.path, by=by)
            if master is None or master.session_id in excused:
                continue
            control = master.controls.get(key)
            if control is None or control.target != fold.agent_id:
                raise OutOfReach("an agent obeyed what nobody ordered", path=fold.path, control=key)
            if control.op != op:
                raise TornRecord("a control is not what was ordered", control=control, obeyed=op)
            assert fold.agent is not None
            if fold.agent.parent_session_id != master.session_id:
                raise OutOfReach("an agent was controlled by a stranger", path=fold.path)
