"""The payloads of a turn are canonical JSON, also with texts that JSON escapes."""

from __future__ import annotations

import json
from typing import Final

import pytest

from system.agents.outbox import Outbox
from system.agents.turn_complete import TurnComplete
from system.agents.turn_failed import FailureCode
from system.agents.turn_payloads import TurnPayloads, error_of
from system.agents.turn_work import OutboxActivity, TurnWork
from system.ports import JsonObject
from system.recording.records.envelope_hash import compute_envelope_hash
from system.recording.records.frozen_json import FrozenJson
from system.storage.codec import canonical

NAME: Final = 'Ada "%b" \\ é \n 𝄞'
SHOWN: Final[list[JsonObject]] = [
    {
        "message_id": f"m{number}", "sender": "USER", "sender_name": NAME, "kind": "text",
        "payload": {"b": [number, None], "a": NAME}, "reply_to": None,
    }
    for number in range(2)
]  # fmt: skip
ERROR: Final = error_of(FailureCode.TIMEOUT, NAME)


def payloads(*shown: JsonObject) -> TurnPayloads:
    return TurnPayloads("t" * 32, "a" * 32, "s" * 32, NAME, "scripted", "%d", shown)


@pytest.mark.parametrize(
    "frozen",
    [
        payloads(*SHOWN).intent(),
        payloads().intent(),
        payloads().route(None),
        payloads().route("exec-0123456789abcdef"),
        payloads().attempt(),
        payloads().attempt_end([]),
        payloads().attempt_end(["m0", "m1"], ERROR),
        payloads().fallback(NAME, 5),
        payloads().failure(ERROR),
        FrozenJson(payloads(*SHOWN).envelope(None).encoded),
    ],
)
def test_a_payload_is_canonical(frozen: FrozenJson) -> None:
    assert canonical(frozen.value()) == frozen.encoded


def test_payloads_have_the_members_of_the_table() -> None:
    turn, agent, session = "t" * 32, "a" * 32, "s" * 32
    made, execution_id = payloads(*SHOWN), "exec-0123456789abcdef"
    error = {"code": "TIMEOUT", "message": NAME}
    assert made.intent().value() == {
        "turnId": turn, "sessionId": session, "messageIds": ["m0", "m1"],
    }  # fmt: skip
    assert made.route(execution_id).value() == {
        "agent": agent, "name": NAME, "provider": "scripted", "model": "%d",
        "sideEffectClass": "REVERSIBLE", "retryOf": execution_id,
    }  # fmt: skip
    assert made.attempt().value() == {"agent": agent, "attempt": 1, "provider": "scripted"}
    ended = {"agent": agent, "attempt": 1, "presented": ["m0"]}
    assert made.attempt_end(["m0"]).value() == {**ended, "status": "success"}
    assert made.attempt_end(["m0"], ERROR).value() == {**ended, "status": "error", "error": error}
    assert made.fallback("why", 5).value() == {
        "from": agent, "to": None, "reason": "why", "afterNs": 5,
    }  # fmt: skip
    assert made.failure(ERROR).value() == {
        "status": "error", "payload": None, "error": error,
        "metadata": {"turnId": turn, "provider": "scripted"},
    }  # fmt: skip
    envelope = json.loads(made.envelope(None).encoded)
    assert list(envelope) == ["agent", "model", "payload", "provider", "routingMetadata"]
    assert (envelope["agent"], envelope["model"], envelope["provider"]) == (NAME, "%d", "scripted")


@pytest.mark.parametrize("shown", [SHOWN, SHOWN[:1], []])
def test_the_hash_of_an_envelope_is_that_of_its_members(shown: list[JsonObject]) -> None:
    envelope = payloads(*shown).envelope(7)
    members = json.loads(envelope.encoded)
    assert compute_envelope_hash(members) == envelope.hash
    assert members["payload"] == [
        {key: each[key] for key in ("sender_name", "kind", "payload")} for each in shown
    ]
    assert members["routingMetadata"] == {
        "agent_id": "a" * 32, "session_id": "s" * 32, "turn_id": "t" * 32, "epoch": 7,
        "message_ids": [each["message_id"] for each in shown],
    }  # fmt: skip


@pytest.mark.parametrize("activities", [(), (OutboxActivity("key", "pay", {}),)])
def test_a_response_names_irreversible_effects(activities: tuple[OutboxActivity, ...]) -> None:
    turn = TurnComplete(
        "t" * 32, ["m0"], NAME, "scripted", NAME, Outbox(), work=TurnWork(activities)
    )
    response = payloads().response(turn)
    metadata = {"turnId": "t" * 32, "provider": "scripted", "identity": NAME}
    if activities:
        metadata["sideEffectClass"] = "IRREVERSIBLE"
    expected = {"status": "success", "payload": {"response": NAME}, "metadata": metadata}
    assert response.encoded == canonical(json.loads(json.dumps(expected)))
