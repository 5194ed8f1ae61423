"""The law of effects: a committed line contains the effects of the tool calls, and no others.

It implements the table "Tools" of ``docs/runtime.md``. A call whose result is an error has no
effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from oracles.runtime.log_records import USER, MessageRecord, SpawnRecord, TurnRecord
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.violations import EffectsMismatch
from oracles.runtime.work_effects import (
    DUE_TOLERANCE_NS,
    SECOND_NS,
    WORK_TOOLS,
    ToolCallLike,
    WorkEffects,
)
from oracles.violation import Phantom

REMINDER_TOLERANCE_NS: Final = 1_000_000
"""The most time between a call of ``remind_me`` and the reading of the clock inside it."""


def check_effects(
    snapshot: RootSnapshot, state: SessionState, turn: TurnRecord, calls: Iterable[ToolCallLike]
) -> None:
    """Require that the line of a committed turn contains exactly the effects of its calls."""
    expected = _ExpectedEffects(snapshot, state, turn)
    for call in calls:
        if "error" not in call.result:
            expected.add(call)
    expected.check()


_RARE: Final = frozenset(
    (
        "cancel_reminder", "gate", "permit_turn", "remind_me", "set_agent_metadata", "subscribe",
        "ungate", "unsubscribe",
    )
)  # fmt: skip


class _RareEffects:
    """The effects that few turns have: metadata, controls, reminders and subscriptions."""

    def __init__(self, calls: Iterable[ToolCallLike]) -> None:
        self.metadata: dict[str, Any] = {}
        self.controls: list[tuple[str, str]] = []
        self.reminders: dict[str, Any] = {}
        self.due_ns: dict[str, int] = {}
        self.cancelled: set[str] = set()
        self.subscribed: dict[str, str] = {}
        self.unsubscribed: set[str] = set()
        for call in calls:
            self._add(call)

    def _add(self, call: ToolCallLike) -> None:
        arguments, result = call.arguments, call.result
        match call.name:
            case "set_agent_metadata":
                self.metadata[arguments["key"]] = arguments["value"]
            case "remind_me":
                self.reminders[result["reminder_id"]] = arguments["payload"]
                if call.at_ns is not None:
                    self.due_ns[result["reminder_id"]] = call.at_ns + arguments["delay_ns"]
            case "cancel_reminder":
                self.cancelled.add(arguments["reminder_id"])
            case "subscribe":
                self.subscribed[result["subscription_id"]] = arguments["name"]
            case "unsubscribe":
                self.unsubscribed.add(arguments["subscription_id"])
            case control:
                self.controls.append((control, arguments["name"]))


class _ExpectedEffects:
    """The effects of the calls so far, compared with the line part by part."""

    def __init__(self, snapshot: RootSnapshot, state: SessionState, turn: TurnRecord) -> None:
        self._snapshot = snapshot
        self._state = state
        self._turn = turn
        self._outbox = {message.message_id: message for message in turn.outbox}
        self._spawned = {spawn.agent_id: spawn for spawn in turn.spawned}
        self._sent: list[str] = []
        self._children: list[str] = []
        self._terminate = False
        self._rare: list[ToolCallLike] = []
        self._work: list[ToolCallLike] = []

    def add(self, call: ToolCallLike) -> None:
        """Add the effects of one accepted call."""
        arguments, result = call.arguments, call.result
        match call.name:
            case "send_message":
                message = self._send(result["message_id"], "text", arguments["payload"])
                self._check_target(message.recipient, arguments["to"])
                self._require("reply_to", message.reply_to, arguments.get("reply_to"))
            case "broadcast":
                for key in result["message_ids"]:
                    self._send(key, "text", arguments["payload"])
            case "poke":
                message = self._send(result["message_id"], "poke", None)
                self._check_target(message.recipient, arguments["to"])
            case "complete":
                self._complete(arguments["result"])
            case "spawn_agent":
                self._spawn(result["agent_id"], arguments)
            case "check_inbox" | "list_children" | "inspect_agent":
                pass
            case name if name in _RARE:
                self._rare.append(call)
            case name if name in WORK_TOOLS:
                self._work.append(call)
            case _:
                raise Phantom("a tool that does not exist accepted a call", call=call)

    def check(self) -> None:
        """Compare every part of the line with the effects of the calls."""
        turn = self._turn
        self._require("outbox", [message.message_id for message in turn.outbox], self._sent)
        self._require("spawned", [spawn.agent_id for spawn in turn.spawned], self._children)
        self._require("terminate", turn.terminate, self._terminate)
        if self._rare or (
            turn.metadata != {} or turn.controls or turn.reminders or turn.cancelled
            or turn.subscribed or turn.unsubscribed
        ):  # fmt: skip
            self._check_rare(_RareEffects(self._rare))
        if self._work or (
            turn.activities or turn.tasks or turn.emitted or turn.scheduled or turn.unscheduled
        ):
            self._check_work(WorkEffects(self._state, turn, self._work))

    def _check_rare(self, expected: _RareEffects) -> None:
        self._require("metadata", self._turn.metadata, expected.metadata)
        self._check_controls(expected)
        self._check_reminders(expected)
        self._check_subscriptions(expected)

    def _check_work(self, expected: WorkEffects) -> None:
        turn = self._turn
        timeless = turn._replace(emitted=tuple(e._replace(fire_at=0.0) for e in turn.emitted))
        for part, effects in expected.parts.items():
            self._require(part, getattr(timeless, part), effects)
        for emitted in turn.emitted:
            actual_ns = round(emitted.fire_at * SECOND_NS)
            due_ns = expected.due_ns.get(emitted.trigger_id, actual_ns)
            if abs(due_ns - actual_ns) >= DUE_TOLERANCE_NS:
                raise self._mismatch(
                    "emits a trigger for another time than the tool call",
                    trigger_id=emitted.trigger_id, expected_ns=due_ns, actual_ns=actual_ns,
                )  # fmt: skip

    def _send(self, key: str, kind: str, payload: object) -> MessageRecord:
        message = self._outbox.get(key)
        if message is None:
            raise self._mismatch("lacks a message that a tool call sent", message_id=key)
        self._sent.append(key)
        self._require("message kind", message.kind, kind)
        self._require("message payload", message.payload, payload)
        return message

    def _complete(self, result: object) -> None:
        self._terminate = True
        last = self._turn.outbox[-1] if self._turn.outbox else None
        if last is None:
            raise self._mismatch("lacks the response of a completed agent", response=result)
        self._send(last.message_id, "response", result)

    def _spawn(self, agent_id: str, arguments: Mapping[str, Any]) -> None:
        spawn = self._spawned.get(agent_id)
        if spawn is None:
            raise self._mismatch("lacks a child that a tool call spawned", agent_id=agent_id)
        self._children.append(agent_id)
        for name in ("name", "instructions", "provider", "model"):
            if name in arguments:
                self._require(f"{name} of a child", getattr(spawn, name), arguments[name])

    def _check_controls(self, expected: _RareEffects) -> None:
        controls = self._turn.controls
        self._require("controls", [c.op for c in controls], [op for op, _ in expected.controls])
        for control, (_, name) in zip(controls, expected.controls, strict=True):
            self._check_target(control.target, name)

    def _check_reminders(self, calls: _RareEffects) -> None:
        """Allow a reminder that is set and cancelled in one turn to leave both traces, or none."""
        turn = self._turn
        cancelled = set(turn.cancelled)
        actual = {
            r.reminder_id: r.payload for r in turn.reminders if r.reminder_id not in cancelled
        }
        expected = {k: v for k, v in calls.reminders.items() if k not in calls.cancelled}
        self._require("reminders", actual, expected)
        for reminder in turn.reminders:
            due_ns = calls.due_ns.get(reminder.reminder_id, reminder.due_ns)
            if not 0 <= due_ns - reminder.due_ns < REMINDER_TOLERANCE_NS:
                raise self._mismatch(
                    "has a reminder with another due time than the tool call",
                    reminder_id=reminder.reminder_id, expected_ns=due_ns, actual_ns=reminder.due_ns,
                )  # fmt: skip
        if not cancelled <= calls.cancelled:
            raise self._mismatch(
                "cancels reminders that no tool call cancelled",
                expected=sorted(calls.cancelled), actual=sorted(cancelled),
            )  # fmt: skip
        for key in sorted(calls.cancelled - cancelled - calls.reminders.keys()):
            if key not in self._state.enqueued:
                raise self._mismatch("lacks the cancellation of a reminder", reminder_id=key)

    def _check_subscriptions(self, calls: _RareEffects) -> None:
        """Allow a subscription that begins and ends in one turn to leave both traces, or none."""
        turn = self._turn
        ended = set(turn.unsubscribed)
        actual = [s for s in turn.subscribed if s.subscription_id not in ended]
        expected = [key for key in calls.subscribed if key not in calls.unsubscribed]
        self._require("subscribed", [s.subscription_id for s in actual], expected)
        for subscription in actual:
            self._check_target(subscription.target, calls.subscribed[subscription.subscription_id])
        if not ended <= calls.unsubscribed:
            raise self._mismatch(
                "ends subscriptions that no tool call ended",
                expected=sorted(calls.unsubscribed), actual=sorted(ended),
            )  # fmt: skip
        for key in sorted(calls.unsubscribed - ended - calls.subscribed.keys()):
            if f"{key}.notice" not in self._state.enqueued:
                raise self._mismatch("lacks the end of a subscription", subscription_id=key)

    def _check_target(self, target: str, name: str) -> None:
        """Require that ``name``, which a call gave, is the id or the name of ``target``.

        The target may be a child that a committed turn spawned and that does not exist yet.
        """
        if name in (target, USER) or target == USER:
            self._require("recipient", target, name)
            return
        state = self._snapshot.agents.get(target)
        spawn = self._spawned.get(target) or (None if state else self._spawn_of(target))
        names = {
            spawn.name if spawn else None,
            state.agent.name if state and state.agent else None,
        }
        if name not in names:
            raise self._mismatch(
                "is addressed to another agent than the tool call named", named=name, target=target
            )

    def _spawn_of(self, agent_id: str) -> SpawnRecord | None:
        """Return the spawn of a child that has no log yet, or None."""
        for state in self._snapshot.agents.values():
            for turn in state.turns.values():
                for spawn in turn.spawned:
                    if spawn.agent_id == agent_id:
                        return spawn
        return None

    def _require(self, part: str, actual: object, expected: object) -> None:
        if actual != expected:
            raise self._mismatch(
                f"has another {part} than its tool calls", expected=expected, actual=actual
            )

    def _mismatch(self, how: str, **evidence: object) -> EffectsMismatch:
        return EffectsMismatch(
            f"the line of a committed turn {how}", turn_id=self._turn.turn_id, **evidence
        )
