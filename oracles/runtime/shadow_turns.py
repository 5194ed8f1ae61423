"""The specification of turns, from the side of the providers.

The simulated providers record every request, tool call and answer. Each committed turn must
match one of its attempts: its response was complete, its line names exactly the presented
messages and the effects of the tool calls, and the provider was given the conversation in the
log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from oracles.runtime.log_records import TurnRecord
from oracles.runtime.root_snapshot import RootSnapshot
from oracles.runtime.session_state import SessionState
from oracles.runtime.turn_effects import check_effects
from oracles.runtime.violations import (
    ConversationMismatch,
    PrematureCommit,
    PresentedMismatch,
    UnpresentedDelivery,
)
from oracles.violation import Phantom, Resurrected, TornRecord, Violation


class ToolCall(NamedTuple):
    """A tool call and its result; ``at_ns`` is the wall clock since 1970, if it is known."""

    name: str
    arguments: Mapping[str, Any]
    result: Mapping[str, Any]
    at_ns: int | None = None

    def repeats(self, other: ToolCall) -> bool:
        """Return whether name, arguments and result are equal; the time does not matter."""
        return self[:3] == other[:3]


@dataclass(slots=True)
class _Attempt:
    prompt: str
    history: tuple[tuple[str, str], ...] | None
    session: str
    superset: bool
    calls: dict[str, ToolCall] = field(default_factory=dict)
    answer: str | None = None


class ShadowTurns:
    """All turns that were requested from a provider, each with its attempts."""

    __slots__ = ("_attempts", "_impossible", "_judged")

    def __init__(self) -> None:
        self._attempts: dict[str, list[_Attempt]] = {}
        self._impossible: set[str] = set()
        self._judged: dict[str, bytes] = {}

    def record_request(
        self,
        turn_id: str,
        prompt: str,
        history: Sequence[tuple[str, str]] | None = None,
        session: str = "",
        *,
        superset: bool = False,
    ) -> None:
        """Record that a provider was asked for a turn.

        ``history`` is the conversation that the provider was given or keeps, as pairs of
        prompt and response; None leaves it unchecked. ``superset`` allows it to contain turns
        that the log lost. ``session`` is the session of the conversation; empty leaves it
        unchecked.
        """
        pairs = None if history is None else tuple(history)
        attempt = _Attempt(prompt, pairs, session, superset)
        self._attempts.setdefault(turn_id, []).append(attempt)

    def record_call(
        self,
        turn_id: str,
        call_id: str,
        name: str,
        arguments: Mapping[str, Any],
        result: Mapping[str, Any],
        at_ns: int | None = None,
    ) -> None:
        """Record a tool call in the last attempt.

        Raises ``TornRecord`` if the same call was recorded before with another result.
        """
        calls = self._attempts[turn_id][-1].calls
        call = ToolCall(name, arguments, result, at_ns)
        before = calls.setdefault(call_id, call)
        if before is not call and not before.repeats(call):
            raise TornRecord(
                "a repeated tool call returned another result",
                turn_id=turn_id, first=before, repeated=call,
            )  # fmt: skip

    def record_answer(self, turn_id: str, response: str) -> None:
        """Record that the provider completed its answer in the last attempt.

        The answer counts even if the runtime did not receive it.
        """
        self._attempts[turn_id][-1].answer = response

    def check(self, snapshot: RootSnapshot, state: SessionState) -> None:
        """Check the committed turns of one session that were not checked before."""
        lines = state.log.lines
        for turn in reversed(state.turns.values()):
            raw = lines[turn.seq - 1].raw
            if self._judged.get(turn.turn_id) == raw:
                break
            self._check_turn(snapshot, state, turn)
            self._judged[turn.turn_id] = raw

    def settle(self, snapshot: RootSnapshot) -> None:
        """Record after a recovery that a turn missing in all logs must never be committed."""
        committed = {key for state in snapshot.agents.values() for key in state.turns}
        self._impossible.update(key for key in self._attempts if key not in committed)
        self._attempts.clear()

    def _check_turn(self, snapshot: RootSnapshot, state: SessionState, turn: TurnRecord) -> None:
        if turn.turn_id in self._impossible:
            raise Resurrected("a turn is committed that a crash had lost", turn_id=turn.turn_id)
        attempts = self._attempts.get(turn.turn_id)
        if not attempts:
            raise Phantom("a turn is committed that no provider was asked for", turn=turn)
        mismatch: Violation | None = None
        for attempt in attempts:
            if attempt.answer != turn.response:
                continue
            try:
                _check_attempt(snapshot, state, turn, attempt)
            except Violation as violation:
                mismatch = violation
            else:
                return
        if mismatch is not None:
            raise mismatch
        raise PrematureCommit(
            "a turn is committed with a response that its provider had not completed",
            turn_id=turn.turn_id, answers=[attempt.answer for attempt in attempts],
            committed=turn.response,
        )  # fmt: skip


def _check_attempt(
    snapshot: RootSnapshot, state: SessionState, turn: TurnRecord, attempt: _Attempt
) -> None:
    _check_prompt(snapshot, state, turn, attempt)
    check_effects(snapshot, state, turn, attempt.calls.values())
    if attempt.session and attempt.session != state.session_id:
        raise ConversationMismatch(
            "a turn was requested in the conversation of another session", turn_id=turn.turn_id,
            expected=state.session_id, actual=attempt.session,
        )  # fmt: skip
    if attempt.history is not None:
        check = _check_memory if attempt.superset else _check_conversation
        check(state, turn, attempt.history)


def _check_prompt(
    snapshot: RootSnapshot, state: SessionState, turn: TurnRecord, attempt: _Attempt
) -> None:
    """Require that the prompt and the checked inbox contain the consumed messages, unchanged."""
    try:
        shown, ids = _messages_in(attempt.prompt)
    except (ValueError, TypeError, KeyError) as error:
        raise PresentedMismatch(
            "a prompt is not a list of messages", turn_id=turn.turn_id, prompt=attempt.prompt
        ) from error
    if turn.trigger_id is not None:
        if ids[:1] != (turn.trigger_id,):
            raise PresentedMismatch(
                "a turn settles a trigger that its prompt does not show first",
                turn_id=turn.turn_id, trigger_id=turn.trigger_id, shown=list(ids),
            )  # fmt: skip
        shown, ids = shown[1:], ids[1:]
    for call in attempt.calls.values():
        if call.name == "check_inbox" and "error" not in call.result:
            new = call.result["messages"]
            shown = [*shown, *new]
            ids = (*ids, *[message["message_id"] for message in new])
    if turn.start is not None and turn.start.prompt != attempt.prompt:
        raise PresentedMismatch(
            "the provider got another prompt than turn.start records", turn_id=turn.turn_id,
            recorded=turn.start.prompt, sent=attempt.prompt,
        )  # fmt: skip
    if ids != turn.presented:
        _raise_presented(turn, ids)
    for message in shown:
        original = state.enqueued[message["message_id"]]
        expected = {
            "message_id": original.message_id,
            "sender": original.sender,
            "kind": original.kind,
            "payload": original.payload,
            "reply_to": original.reply_to,
        }
        sender = snapshot.agents.get(original.sender)
        if sender is not None and sender.agent is not None:
            expected["sender_name"] = sender.agent.name
        if expected.items() <= message.items():
            continue
        actual = {name: message.get(name) for name in expected}
        if actual != expected:
            raise TornRecord(
                "a prompt shows a message with other contents than were enqueued",
                turn_id=turn.turn_id, expected=expected, actual=actual,
            )  # fmt: skip


def _raise_presented(turn: TurnRecord, shown: tuple[str, ...]) -> None:
    unseen = [key for key in turn.presented if key not in shown]
    if unseen:
        raise UnpresentedDelivery(
            "a committed turn consumed messages that it was never shown", turn_id=turn.turn_id,
            shown=list(shown), consumed=list(turn.presented), never_shown=unseen,
        )  # fmt: skip
    raise PresentedMismatch(
        "a committed turn does not name exactly the messages that it was shown",
        turn_id=turn.turn_id, shown=list(shown), consumed=list(turn.presented),
    )  # fmt: skip


@lru_cache(maxsize=32)
def _messages_in(prompt: str) -> tuple[Sequence[Mapping[str, Any]], tuple[str, ...]]:
    """Return the messages of a prompt and their ids; the caller must not change them.

    A caller that checks many similar disks passes the same few prompts again and again.
    """
    shown = json.loads(prompt)
    return shown, tuple([message["message_id"] for message in shown])


def _check_conversation(
    state: SessionState, turn: TurnRecord, history: Sequence[tuple[str, str]]
) -> None:
    """Require that a bare model was given exactly the committed turns before this one."""
    before = list(islice(state.turns.values(), turn.number))
    if len(history) != len(before):
        raise ConversationMismatch(
            "a model was given another number of turns than the log has", turn_id=turn.turn_id,
            log=len(before), given=len(history),
        )  # fmt: skip
    for (prompt, response), earlier in zip(history, before, strict=True):
        expected = (earlier.start.prompt if earlier.start else prompt, earlier.response)
        if (prompt, response) != expected:
            raise ConversationMismatch(
                "a model was given a turn that differs from the one in the log",
                turn_id=turn.turn_id, log=expected, given=(prompt, response),
            )  # fmt: skip


def _check_memory(state: SessionState, turn: TurnRecord, memory: Sequence[tuple[str, str]]) -> None:
    """Require that a service holds the committed turns before this one, in their order."""
    remaining = iter(memory)
    for earlier in islice(state.turns.values(), turn.number):
        if not any(
            response == earlier.response and (not earlier.start or prompt == earlier.start.prompt)
            for prompt, response in remaining
        ):
            raise ConversationMismatch(
                "the conversation kept by a service lacks a committed turn, or has it out of order",
                turn_id=turn.turn_id, missing=earlier.turn_id, conversation=memory,
            )  # fmt: skip
