"""The facts of a turn in the form in which its execution is recorded (``docs/recording.md``).

The running turn records them; recovery computes them again from the session's log. All of them
were in a line, and so are plain JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from system.agents.turn_complete import TurnComplete
from system.agents.turn_failed import FailureCode
from system.ports import Json, JsonObject, SideEffectClass
from system.recording.records.envelope_hash import FrozenEnvelope
from system.recording.records.frozen_json import FrozenJson
from system.recording.records.record import EFFECTS_MEMBER

SIDE_EFFECTS = SideEffectClass.REVERSIBLE
"""The tools of a turn only collect effects until its line is durable."""


_MOST_AGENTS: Final = 1024
"""The most agents for which payloads that are equal in each turn are cached."""


class TurnFacts(NamedTuple):
    """``shown`` are the presented messages as the prompt has them."""

    turn_id: str
    agent_id: str
    session_id: str
    name: str
    provider: str
    model: str
    shown: Sequence[JsonObject]

    def envelope(self, epoch: int | None) -> FrozenEnvelope:
        """Return the envelope; ids and ``epoch`` do not enter its hash."""
        payload: list[Json] = [
            {
                "sender_name": message["sender_name"],
                "kind": message["kind"],
                "payload": message["payload"],
            }
            for message in self.shown
        ]
        members: JsonObject = {
            "agent": self.name,
            "provider": self.provider,
            "model": self.model,
            "payload": payload,
        }
        routing: JsonObject = {
            "agent_id": self.agent_id,
            "session_id": self.session_id,
            "turn_id": self.turn_id,
            "message_ids": self._message_ids(),
            "epoch": epoch,
        }
        return FrozenEnvelope.of_plain(members, routing)

    def intent(self) -> FrozenJson:
        """Return the payload of INTENT_RECEIVED."""
        return FrozenJson.of_plain({
            "turnId": self.turn_id, "sessionId": self.session_id, "messageIds": self._message_ids(),
        })  # fmt: skip

    def route(self, retry_of: str | None) -> FrozenJson:
        """Return the payload of ROUTER_DECISION."""
        return _route(self.agent_id, self.name, self.provider, self.model, retry_of)

    def attempt(self) -> FrozenJson:
        """Return the payload of AGENT_ATTEMPT_START; a turn has one attempt."""
        return _attempt(self.agent_id, self.provider)

    def attempt_end(self, presented: Sequence[str], error: JsonObject | None = None) -> FrozenJson:
        """Return the payload of AGENT_ATTEMPT_END; ``presented`` includes checked messages."""
        payload: JsonObject = {
            "agent": self.agent_id,
            "attempt": 1,
            "status": "success" if error is None else "error",
            "presented": list[Json](presented),
        }
        if error is not None:
            payload["error"] = error
        return FrozenJson.of_plain(payload)

    def fallback(self, reason: str, after_ns: int) -> FrozenJson:
        """Return the payload of FALLBACK_TRIGGERED: the same agent, after a pause."""
        return FrozenJson.of_plain(
            {"from": self.agent_id, "to": None, "reason": reason, "afterNs": after_ns}
        )

    def failure(self, error: JsonObject) -> FrozenJson:
        """Return the final response of a turn that has failed."""
        metadata: JsonObject = {"turnId": self.turn_id, "provider": self.provider}
        return FrozenJson.of_plain(
            {"status": "error", "payload": None, "metadata": metadata, "error": error}
        )

    def _message_ids(self) -> list[Json]:
        return [message["message_id"] for message in self.shown]


@lru_cache(maxsize=_MOST_AGENTS)
def _route(agent_id: str, name: str, provider: str, model: str, retry_of: str | None) -> FrozenJson:
    return FrozenJson.of_plain({
        "agent": agent_id,
        "name": name,
        "provider": provider,
        "model": model,
        "sideEffectClass": str(SIDE_EFFECTS),
        "retryOf": retry_of,
    })  # fmt: skip


@lru_cache(maxsize=_MOST_AGENTS)
def _attempt(agent_id: str, provider: str) -> FrozenJson:
    return FrozenJson.of_plain({"agent": agent_id, "attempt": 1, "provider": provider})


def error_of(code: FailureCode, message: str) -> JsonObject:
    """Return the error of a turn, as events and responses have it."""
    return {"code": str(code), "message": message}


def response_of(turn: TurnComplete) -> FrozenJson:
    """Return the final response of a committed turn, which its line determines.

    A turn whose line promises activities is IRREVERSIBLE (docs/recording.md, After a crash).
    """
    metadata: JsonObject = {
        "turnId": turn.turn_id, "provider": turn.provider, "identity": turn.identity,
    }  # fmt: skip
    if turn.work.activities:
        metadata[EFFECTS_MEMBER] = str(SideEffectClass.IRREVERSIBLE)
    payload: JsonObject = {"response": turn.response}
    return FrozenJson.of_plain({"status": "success", "payload": payload, "metadata": metadata})
