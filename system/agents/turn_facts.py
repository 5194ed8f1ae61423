"""The facts of a turn in the form in which its execution is recorded (``docs/recording.md``).

The running turn records them; recovery makes them again from the session's log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from system.agents.turn_complete import TurnComplete
from system.agents.turn_failed import FailureCode
from system.ports import Json, JsonObject, SideEffectClass
from system.recording.record import EFFECTS_MEMBER

SIDE_EFFECTS = SideEffectClass.REVERSIBLE
"""The tools of a turn only collect effects until its line is durable."""


class TurnFacts(NamedTuple):
    """``shown`` are the presented messages as the prompt has them."""

    turn_id: str
    agent_id: str
    session_id: str
    name: str
    provider: str
    model: str
    shown: Sequence[JsonObject]

    def envelope(self, epoch: int | None) -> JsonObject:
        """Return the envelope; ids and ``epoch`` do not enter its hash."""
        return {
            "agent": self.name,
            "provider": self.provider,
            "model": self.model,
            "payload": [
                {name: message[name] for name in ("sender_name", "kind", "payload")}
                for message in self.shown
            ],
            "routingMetadata": {
                "agent_id": self.agent_id,
                "session_id": self.session_id,
                "turn_id": self.turn_id,
                "message_ids": self._message_ids(),
                "epoch": epoch,
            },
        }

    def intent(self) -> JsonObject:
        """Return the payload of INTENT_RECEIVED."""
        return {
            "turnId": self.turn_id, "sessionId": self.session_id, "messageIds": self._message_ids(),
        }  # fmt: skip

    def route(self, retry_of: str | None) -> JsonObject:
        """Return the payload of ROUTER_DECISION."""
        return {
            "agent": self.agent_id,
            "name": self.name,
            "provider": self.provider,
            "model": self.model,
            "sideEffectClass": str(SIDE_EFFECTS),
            "retryOf": retry_of,
        }

    def attempt(self) -> JsonObject:
        """Return the payload of AGENT_ATTEMPT_START; a turn has one attempt."""
        return {"agent": self.agent_id, "attempt": 1, "provider": self.provider}

    def attempt_end(self, presented: Sequence[str], error: JsonObject | None = None) -> JsonObject:
        """Return the payload of AGENT_ATTEMPT_END; ``presented`` includes checked messages."""
        payload: JsonObject = {
            "agent": self.agent_id,
            "attempt": 1,
            "status": "success" if error is None else "error",
            "presented": list[Json](presented),
        }
        if error is not None:
            payload["error"] = error
        return payload

    def fallback(self, reason: str, after_ns: int) -> JsonObject:
        """Return the payload of FALLBACK_TRIGGERED: the same agent, after a pause."""
        return {"from": self.agent_id, "to": None, "reason": reason, "afterNs": after_ns}

    def failure(self, error: JsonObject) -> JsonObject:
        """Return the final response of a turn that has failed."""
        metadata: JsonObject = {"turnId": self.turn_id, "provider": self.provider}
        return {"status": "error", "payload": None, "metadata": metadata, "error": error}

    def _message_ids(self) -> list[Json]:
        return [message["message_id"] for message in self.shown]


def error_of(code: FailureCode, message: str) -> JsonObject:
    """Return the error of a turn, as events and responses have it."""
    return {"code": str(code), "message": message}


def response_of(turn: TurnComplete) -> JsonObject:
    """Return the final response of a committed turn; its line alone determines it.

    A turn whose line promises activities is IRREVERSIBLE (rule Z19).
    """
    metadata: JsonObject = {
        "turnId": turn.turn_id, "provider": turn.provider, "identity": turn.identity,
    }  # fmt: skip
    if turn.work.activities:
        metadata[EFFECTS_MEMBER] = str(SideEffectClass.IRREVERSIBLE)
    return {"status": "success", "payload": {"response": turn.response}, "metadata": metadata}
