"""What the outside world did in each turn: which prompt, which calls, which answer.

Filled by the simulated providers, judged against the committed lines: a turn is complete
only if its answer was (R7), its line names exactly what was shown (R4) and promises
exactly what was called, and a bare model was told exactly the log's conversation (V-6).
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


class Call(NamedTuple):
    """One call of a tool, and what the runtime answered; ``at_ns`` is the wall clock, if known."""

    name: str
    arguments: Mapping[str, Any]
    result: Mapping[str, Any]
    at_ns: int | None = None

    def is_like(self, other: Call) -> bool:
        """Whether it is the same call with the same result, at whatever time."""
        return self[:3] == other[:3]


@dataclass(slots=True)
class _Attempt:
    prompt: str
    history: tuple[tuple[str, str], ...] | None
    session: str
    superset: bool
    calls: dict[str, Call] = field(default_factory=dict)
    answer: str | None = None


class ShadowTurns:
    """All turns that a provider was asked for, by turn id; an id may be asked for again."""

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
        """A provider was asked, in the conversation of ``session``, which is judged if given.

        ``history`` is what it was told before, or remembers, as pairs; without one it is not
        judged. With ``superset`` it may remember turns that the log has lost.
        """
        told = None if history is None else tuple(history)
        attempt = _Attempt(prompt, told, session, superset)
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
        """A tool was called in the last attempt; raise when a repeated call gets another result."""
        calls = self._attempts[turn_id][-1].calls
        call = Call(name, arguments, result, at_ns)
        before = calls.setdefault(call_id, call)
        if before is not call and not before.is_like(call):
            raise TornRecord(
                "a repeated call got another result", turn_id=turn_id, call=call, before=before,
            )  # fmt: skip

    def record_answer(self, turn_id: str, response: str) -> None:
        """The last attempt's answer was produced to its end, whether or not it arrived."""
        self._attempts[turn_id][-1].answer = response

    def check(self, snapshot: RootSnapshot, state: SessionState) -> None:
        """Judge the committed turns of one session that were not judged before."""
        lines = state.log.lines
        for turn in reversed(state.turns.values()):
            raw = lines[turn.seq - 1].raw
            if self._judged.get(turn.turn_id) == raw:
                break
            self._judge(snapshot, state, turn)
            self._judged[turn.turn_id] = raw

    def settle(self, snapshot: RootSnapshot) -> None:
        """After a recovery: a turn that is in no log now will never be."""
        committed = {key for state in snapshot.agents.values() for key in state.turns}
        self._impossible.update(key for key in self._attempts if key not in committed)
        self._attempts.clear()

    def _judge(self, snapshot: RootSnapshot, state: SessionState, turn: TurnRecord) -> None:
        if turn.turn_id in self._impossible:
            raise Resurrected("a turn is back that a crash had taken", turn=turn.turn_id)
        attempts = self._attempts.get(turn.turn_id)
        if not attempts:
            raise Phantom("a turn is committed that no provider was asked for", turn=turn)
        broken: Violation | None = None
        for attempt in attempts:
            if attempt.answer != turn.response:
                continue
            try:
                _check_attempt(snapshot, state, turn, attempt)
            except Violation as violation:
                broken = violation
            else:
                return
        if broken is not None:
            raise broken
        raise PrematureCommit(
            "a turn is committed whose answer was never produced", turn_id=turn.turn_id,
            response=turn.response, answers=[attempt.answer for attempt in attempts],
        )  # fmt: skip


def _check_attempt(
    snapshot: RootSnapshot, state: SessionState, turn: TurnRecord, attempt: _Attempt
) -> None:
    _check_prompt(snapshot, state, turn, attempt)
    check_effects(snapshot, state, turn, attempt.calls.values())
    if attempt.session and attempt.session != state.session_id:
        raise ConversationMismatch(
            "a turn was asked for in the conversation of another session", turn_id=turn.turn_id,
            session=attempt.session, expected=state.session_id,
        )  # fmt: skip
    if attempt.history is not None:
        judge = check_memory if attempt.superset else check_conversation
        judge(state, turn, attempt.history)


def _check_prompt(
    snapshot: RootSnapshot, state: SessionState, turn: TurnRecord, attempt: _Attempt
) -> None:
    """The prompt is the messages that the line says were shown, whole."""
    try:
        shown, ids = _messages_in(attempt.prompt)
    except (ValueError, TypeError, KeyError) as error:
        raise PresentedMismatch("a prompt is no list of messages", prompt=attempt.prompt) from error
    for call in attempt.calls.values():
        if call.name == "check_inbox" and "error" not in call.result:
            new = call.result["messages"]
            shown = [*shown, *new]
            ids = (*ids, *[message["message_id"] for message in new])
    if turn.start is not None and turn.start.prompt != attempt.prompt:
        raise PresentedMismatch("the log has another prompt than the provider", start=turn.start)
    presented = turn.presented
    if ids != presented:
        unseen = [key for key in presented if key not in ids]
        if unseen:
            raise UnpresentedDelivery(
                "a turn consumed what it never showed", unseen=unseen, shown=list(ids)
            )
        raise PresentedMismatch(
            "a turn does not name what it showed", shown=list(ids), presented=list(presented)
        )
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
            raise TornRecord("a message was shown otherwise than it was sent", shown=actual,
                             expected=expected)  # fmt: skip


@lru_cache(maxsize=32)
def _messages_in(prompt: str) -> tuple[Sequence[Mapping[str, Any]], tuple[str, ...]]:
    """Return the messages of a prompt, never to be changed, and their ids.

    Who judges many disks that are nearly the same meets the same few prompts again and again.
    """
    shown = json.loads(prompt)
    return shown, tuple([message["message_id"] for message in shown])


def check_conversation(
    state: SessionState, turn: TurnRecord, history: Sequence[tuple[str, str]]
) -> None:
    """A bare model was told the log's committed turns before this one, and nothing else (V-6)."""
    before = list(islice(state.turns.values(), turn.number))
    if len(history) != len(before):
        raise ConversationMismatch(
            "a model was told another number of turns than the log has", turn_id=turn.turn_id,
            told=len(history), log=len(before),
        )  # fmt: skip
    for (prompt, response), earlier in zip(history, before, strict=True):
        known = earlier.start.prompt if earlier.start else prompt
        if (prompt, response) != (known, earlier.response):
            raise ConversationMismatch(
                "a model was told another turn than the log's", turn_id=turn.turn_id,
                told=(prompt, response), log=(known, earlier.response),
            )  # fmt: skip


def check_memory(state: SessionState, turn: TurnRecord, memory: Sequence[tuple[str, str]]) -> None:
    """A service remembers all of the log's committed turns before this one, in their order."""
    remembered = iter(memory)
    for earlier in islice(state.turns.values(), turn.number):
        if not any(
            response == earlier.response and (not earlier.start or prompt == earlier.start.prompt)
            for prompt, response in remembered
        ):
            raise ConversationMismatch(
                "a service does not remember a turn that the log has", turn_id=turn.turn_id,
                missing=earlier.turn_id, memory=memory,
            )  # fmt: skip
