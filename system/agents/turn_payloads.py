"""The payloads of a turn in the form in which its execution is recorded (``docs/recording.md``).

The running turn records them; recovery computes them again from the session's log. All of them
were in a line, and so are plain JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from system.agents.turn_complete import TurnComplete
from system.agents.turn_failed import FailureCode
from system.ports import JsonObject, SideEffectClass
from system.recording.records.envelope_hash import FrozenEnvelope
from system.recording.records.event import EventType
from system.recording.records.frozen_json import FrozenJson
from system.storage.codec import canonical_of_plain, canonical_text

SIDE_EFFECTS = SideEffectClass.REVERSIBLE
"""The tools of a turn only collect effects until its line is durable."""

# In Python 3.11 the look-up of a member of an enum takes longer than a call.
_RECEIVED: Final = EventType.INTENT_RECEIVED
_ROUTED: Final = EventType.ROUTER_DECISION
_STARTED: Final = EventType.AGENT_ATTEMPT_START

_MOST_AGENTS: Final = 1024
"""The most agents whose texts are kept as JSON."""

# Canonical JSON has its members in the order of their names. To encode objects takes much longer.
_SHOWN: Final = b'{"kind":%b,"payload":%b,"sender_name":%b}'
_HASHED: Final = b'{"agent":%b,"model":%b,"payload":[%b],"provider":%b}'
_ROUTING: Final = b'{"agent_id":%b,"epoch":%b,"message_ids":%b,"session_id":%b,"turn_id":%b}'
_INTENT: Final = b'{"messageIds":%b,"sessionId":%b,"turnId":%b}'
_ROUTE: Final = (
    b'{"agent":%b,"model":%b,"name":%b,"provider":%b,"retryOf":%b,"sideEffectClass":"%b"}'
)
_ATTEMPT: Final = b'{"agent":%b,"attempt":1,"provider":%b}'
_ATTEMPT_END: Final = b'{"agent":%b,"attempt":1,%b"presented":%b,"status":"%b"}'
_RESPONSE: Final = (
    b'{"metadata":{"identity":%b,"provider":%b,%b"turnId":%b},"payload":{"response":%b},'
    b'"status":"success"}'
)
_EFFECTS: Final = b'"sideEffectClass":"%b",'
_REVERSIBLE: Final = SIDE_EFFECTS.encode()
_IRREVERSIBLE: Final = SideEffectClass.IRREVERSIBLE.encode()


class _AgentJson(NamedTuple):
    """The texts that are equal in each turn of an agent, as JSON."""

    agent_id: bytes
    session_id: bytes
    name: bytes
    provider: bytes
    model: bytes


class TurnPayloads:
    """``shown`` are the presented messages as the prompt has them."""

    __slots__ = ("_agent", "_message_ids", "_shown", "_turn_id")

    def __init__(
        self, turn_id: str, agent_id: str, session_id: str, name: str, provider: str, model: str,
        shown: Sequence[JsonObject],
    ) -> None:  # fmt: skip
        self._turn_id = canonical_text(turn_id)
        self._agent = _agent_json(agent_id, session_id, name, provider, model)
        self._shown = shown
        self._message_ids = canonical_of_plain([message["message_id"] for message in shown])

    def envelope(self, epoch: int | None) -> FrozenEnvelope:
        """Return the envelope; ids and ``epoch`` do not enter its hash."""
        agent = self._agent
        payload = b",".join([
            _SHOWN % (
                canonical_text(str(message["kind"])),
                canonical_of_plain(message["payload"]),
                canonical_text(str(message["sender_name"])),
            )
            for message in self._shown
        ])  # fmt: skip
        hashed = _HASHED % (agent.name, agent.model, payload, agent.provider)
        routing = _ROUTING % (
            agent.agent_id, b"null" if epoch is None else b"%d" % epoch, self._message_ids,
            agent.session_id, self._turn_id,
        )  # fmt: skip
        return FrozenEnvelope.of_parts(hashed, routing)

    def beginning(self, retry_of: str | None) -> Sequence[tuple[EventType, FrozenJson]]:
        """Return the events before the call of the provider, in their order."""
        return (
            (_RECEIVED, self.intent()),
            (_ROUTED, self.route(retry_of)),
            (_STARTED, self.attempt()),
        )

    def intent(self) -> FrozenJson:
        """Return the payload of INTENT_RECEIVED."""
        return FrozenJson(_INTENT % (self._message_ids, self._agent.session_id, self._turn_id))

    def route(self, retry_of: str | None) -> FrozenJson:
        """Return the payload of ROUTER_DECISION."""
        agent = self._agent
        retried = b"null" if retry_of is None else canonical_text(retry_of)
        texts = agent.agent_id, agent.model, agent.name, agent.provider, retried, _REVERSIBLE
        return FrozenJson(_ROUTE % texts)

    def attempt(self) -> FrozenJson:
        """Return the payload of AGENT_ATTEMPT_START; a turn has one attempt."""
        return FrozenJson(_ATTEMPT % (self._agent.agent_id, self._agent.provider))

    def attempt_end(self, presented: Sequence[str], error: JsonObject | None = None) -> FrozenJson:
        """Return the payload of AGENT_ATTEMPT_END; ``presented`` includes checked messages."""
        texts, status, member = canonical_of_plain([*presented]), b"success", b""
        if error is not None:
            status, member = b"error", b'"error":%b,' % canonical_of_plain(error)
        return FrozenJson(_ATTEMPT_END % (self._agent.agent_id, member, texts, status))

    def fallback(self, reason: str, after_ns: int) -> FrozenJson:
        """Return the payload of FALLBACK_TRIGGERED: the same agent, after a pause."""
        return FrozenJson(
            b'{"afterNs":%d,"from":%b,"reason":%b,"to":null}'
            % (after_ns, self._agent.agent_id, canonical_text(reason))
        )

    def response(self, turn: TurnComplete) -> FrozenJson:
        """Return the final response of the committed turn, which its line determines.

        A turn whose line has activities is IRREVERSIBLE (docs/recording.md, Recorded turns).
        """
        effects = _EFFECTS % _IRREVERSIBLE if turn.work.activities else b""
        return FrozenJson(
            _RESPONSE % (
                canonical_text(turn.identity), canonical_text(turn.provider), effects,
                self._turn_id, canonical_text(turn.response),
            )
        )  # fmt: skip

    def failure(self, error: JsonObject) -> FrozenJson:
        """Return the final response of a turn that has failed."""
        return FrozenJson(
            b'{"error":%b,"metadata":{"provider":%b,"turnId":%b},"payload":null,"status":"error"}'
            % (canonical_of_plain(error), self._agent.provider, self._turn_id)
        )


@lru_cache(maxsize=_MOST_AGENTS)
def _agent_json(agent_id: str, session_id: str, name: str, provider: str, model: str) -> _AgentJson:
    return _AgentJson(*map(canonical_text, (agent_id, session_id, name, provider, model)))


def error_of(code: FailureCode, message: str) -> JsonObject:
    """Return the error of a turn, as events and responses have it."""
    return {"code": str(code), "message": message}
