"""What the tools that were called in a turn must leave in its line, and nothing else.

A call whose result is an error leaves nothing. The others leave, in the order of the calls,
what the table "Tools" of the contract says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from oracles.runtime.log_records import USER, MessageRecord, SpawnRecord, TurnRecord
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.violations import EffectsMismatch
from oracles.violation import Phantom

MOMENT_NS: Final = 1_000_000


class ToolCallLike(Protocol):
    """One call of a tool."""

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> Mapping[str, Any]: ...
    @property
    def result(self) -> Mapping[str, Any]: ...
    @property
    def at_ns(self) -> int | None: ...


def check_effects(
    snapshot: RootSnapshot, state: SessionState, turn: TurnRecord, calls: Iterable[ToolCallLike]
) -> None:
    """Raise when a committed turn's line is not what its calls demand."""
    expectation = _Expectation(snapshot, state, turn)
    for call in calls:
        if "error" not in call.result:
            expectation.add(call)
    expectation.check()


_REST: Final = frozenset(
    (
        "cancel_reminder", "gate", "permit_turn", "remind_me", "set_agent_metadata", "subscribe",
        "ungate", "unsubscribe",
    )
)  # fmt: skip


class _Rest:
    """What the calls of few turns demand: metadata, controls, reminders and subscriptions."""

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


class _Expectation:
    """The line that the calls so far demand, compared part by part."""

    def __init__(self, snapshot: RootSnapshot, state: SessionState, turn: TurnRecord) -> None:
        self._seen = snapshot
        self._state = state
        self._turn = turn
        self._outbox = {message.message_id: message for message in turn.outbox}
        self._spawned = {spawn.agent_id: spawn for spawn in turn.spawned}
        self._sent: list[str] = []
        self._children: list[str] = []
        self._terminate = False
        self._rest: list[ToolCallLike] = []

    def add(self, call: ToolCallLike) -> None:
        """Take in the effect of one accepted call."""
        arguments, result = call.arguments, call.result
        match call.name:
            case "send_message":
                message = self._send(result["message_id"], "text", arguments["payload"])
                self._addressed(message.recipient, arguments["to"])
                self._equal("reply_to", message.reply_to, arguments.get("reply_to"))
            case "broadcast":
                for key in result["message_ids"]:
                    self._send(key, "text", arguments["payload"])
            case "poke":
                message = self._send(result["message_id"], "poke", None)
                self._addressed(message.recipient, arguments["to"])
            case "complete":
                self._complete(arguments["result"])
            case "spawn_agent":
                self._spawn(result["agent_id"], arguments)
            case "check_inbox" | "list_children" | "inspect_agent":
                pass
            case name if name in _REST:
                self._rest.append(call)
            case _:
                raise Phantom("a tool is accepted that does not exist", call=call)

    def check(self) -> None:
        """Compare all parts of the line with what was taken in."""
        turn = self._turn
        self._equal("outbox", [message.message_id for message in turn.outbox], self._sent)
        self._equal("spawned", [spawn.agent_id for spawn in turn.spawned], self._children)
        self._equal("terminate", turn.terminate, self._terminate)
        # Few turns have anything else.
        if self._rest or (
            turn.metadata != {} or turn.controls or turn.reminders or turn.cancelled
            or turn.subscribed or turn.unsubscribed
        ):  # fmt: skip
            self._check_rest(_Rest(self._rest))

    def _check_rest(self, rest: _Rest) -> None:
        self._equal("metadata", self._turn.metadata, rest.metadata)
        self._check_controls(rest)
        self._check_reminders(rest)
        self._check_subscriptions(rest)

    def _send(self, key: str, kind: str, payload: object) -> MessageRecord:
        message = self._outbox.get(key)
        if message is None:
            raise EffectsMismatch(
                "a turn lost a message that it sent", message_id=key, turn=self._turn
            )
        self._sent.append(key)
        self._equal("kind", message.kind, kind)
        self._equal("payload", message.payload, payload)
        return message

    def _complete(self, result: object) -> None:
        self._terminate = True
        last = self._turn.outbox[-1] if self._turn.outbox else None
        if last is None:
            raise EffectsMismatch("a turn lost the response of its agent", turn=self._turn)
        self._send(last.message_id, "response", result)

    def _spawn(self, agent_id: str, arguments: Mapping[str, Any]) -> None:
        spawn = self._spawned.get(agent_id)
        if spawn is None:
            raise EffectsMismatch(
                "a turn lost a child that it spawned", id=agent_id, turn=self._turn
            )
        self._children.append(agent_id)
        for name in ("name", "instructions", "provider", "model"):
            if name in arguments:
                self._equal(name, getattr(spawn, name), arguments[name])

    def _check_controls(self, rest: _Rest) -> None:
        controls = self._turn.controls
        self._equal("ops", [c.op for c in controls], [op for op, _ in rest.controls])
        for control, (_, name) in zip(controls, rest.controls, strict=True):
            self._addressed(control.target, name)

    def _check_reminders(self, rest: _Rest) -> None:
        """A reminder that was set and cancelled in one turn may leave both traces, or none."""
        turn = self._turn
        cancelled = set(turn.cancelled)
        lasting = {
            r.reminder_id: r.payload for r in turn.reminders if r.reminder_id not in cancelled
        }
        expected = {k: v for k, v in rest.reminders.items() if k not in rest.cancelled}
        self._equal("reminders", lasting, expected)
        for reminder in turn.reminders:
            asked_ns = rest.due_ns.get(reminder.reminder_id, reminder.due_ns)
            # The call took a moment.
            if not 0 <= asked_ns - reminder.due_ns < MOMENT_NS:
                raise EffectsMismatch(
                    "a reminder is due at another time", asked_ns=asked_ns, due_ns=reminder.due_ns
                )
        if not cancelled <= rest.cancelled:
            raise EffectsMismatch("a turn cancels what nobody cancelled", turn=turn)
        for key in rest.cancelled - cancelled - rest.reminders.keys():
            if key not in self._state.enqueued:
                raise EffectsMismatch("a turn lost a cancellation", turn=turn, reminder_id=key)

    def _check_subscriptions(self, rest: _Rest) -> None:
        turn = self._turn
        gone = set(turn.unsubscribed)
        lasting = [s for s in turn.subscribed if s.subscription_id not in gone]
        expected = [key for key in rest.subscribed if key not in rest.unsubscribed]
        self._equal("subscribed", [s.subscription_id for s in lasting], expected)
        for subscription in lasting:
            self._addressed(subscription.target, rest.subscribed[subscription.subscription_id])
        if not gone <= rest.unsubscribed:
            raise EffectsMismatch("a turn unsubscribes what nobody unsubscribed", turn=turn)
        for key in rest.unsubscribed - gone - rest.subscribed.keys():
            if f"{key}.notice" not in self._state.enqueued:
                raise EffectsMismatch("a turn lost an end of a subscription", turn=turn, id=key)

    def _addressed(self, target: str, name: str) -> None:
        """``name`` is an agent's id or its name; a child that is promised need not be born yet."""
        if name in (target, USER) or target == USER:
            self._equal("recipient", target, name)
            return
        state = self._seen.agents.get(target)
        promised = self._spawned.get(target) or (None if state else self._promised(target))
        known = {
            promised.name if promised else None,
            state.agent.name if state and state.agent else None,
        }
        if name not in known:
            raise EffectsMismatch(
                "a turn reaches somebody else than it named", named=name, target=target
            )

    def _promised(self, agent_id: str) -> SpawnRecord | None:
        """Return what a committed turn has said about a child that no log shows yet."""
        for state in self._seen.agents.values():
            for turn in state.turns.values():
                for spawn in turn.spawned:
                    if spawn.agent_id == agent_id:
                        return spawn
        return None

    def _equal(self, part: str, actual: object, expected: object) -> None:
        if actual != expected:
            raise EffectsMismatch(
                f"a turn's line has another {part} than its calls", turn_id=self._turn.turn_id,
                actual=actual, expected=expected,
            )  # fmt: skip
