"""The values that the target of recording records: envelopes, payloads, responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from system.recording.records.event import EventType
from system.recording.records.long_text import LongText

AGENT: Final = "a9e47" * 6 + "00"

REFUSED: Final[Mapping[str, Callable[[], object]]] = MappingProxyType(
    {
        "a set": lambda: {"one"},
        "keys that are numbers": lambda: {10: "ten", 2: "two"},
        "not a number": lambda: float("nan"),
        "a time without a zone": lambda: datetime(2026, 1, 1),  # noqa: DTZ001 (it must be refused)
        "an object": object,
    }
)
"""Values that no record can hold, so recording one is refused (docs/file-formats.md, Records)."""

ODD: Final = ("", "", "", "a tuple", *REFUSED)

_FOLLOWING: Final[Mapping[str | None, EventType]] = MappingProxyType(
    {
        None: EventType.INTENT_RECEIVED,
        EventType.INTENT_RECEIVED: EventType.ROUTER_DECISION,
        EventType.ROUTER_DECISION: EventType.AGENT_ATTEMPT_START,
        EventType.AGENT_ATTEMPT_START: EventType.AGENT_ATTEMPT_END,
        EventType.AGENT_ATTEMPT_END: EventType.FALLBACK_TRIGGERED,
        EventType.FALLBACK_TRIGGERED: EventType.AGENT_ATTEMPT_START,
    }
)
_ENDABLE: Final = (EventType.AGENT_ATTEMPT_START, EventType.AGENT_ATTEMPT_END)


def envelope(number: int, text: str) -> dict[str, Any]:
    """Return the envelope of a request; its number distinguishes it from all others."""
    return {
        "agent": "Ada", "provider": "scripted", "model": "m",
        "payload": [{"sender_name": "USER", "kind": "text", "payload": text, "number": number}],
        "routingMetadata": {"turn_id": f"{number:032x}"},
    }  # fmt: skip


def odd_value(kind: str) -> object:
    """Return a value of a kind of ``ODD``."""
    return ("one", ("two",)) if kind == "a tuple" else REFUSED[kind]()


def plain_value(kind: str) -> object:
    """Return the JSON that an accepted value of a kind of ``ODD`` becomes."""
    assert kind == "a tuple"
    return ["one", ["two"]]


def following(types: Sequence[str]) -> EventType:
    """Return the event that may follow those of an execution (docs/recording.md, Events)."""
    return _FOLLOWING[types[-1] if types else None]


def payload(event_type: EventType, number: int, status: str) -> dict[str, Any]:
    """Return the payload of event ``number`` of an execution."""
    attempt = (number - 1) // 3
    match event_type:
        case EventType.INTENT_RECEIVED:
            return {"turnId": "b" * 32, "messageIds": ["c" * 32]}
        case EventType.ROUTER_DECISION:
            return {"agent": AGENT, "name": "Ada", "retryOf": None}
        case EventType.AGENT_ATTEMPT_END:
            return {"agent": AGENT, "attempt": attempt, "status": status}
        case EventType.FALLBACK_TRIGGERED:
            return {"from": AGENT, "to": None, "reason": "busy", "afterNs": 5}
    return {"agent": AGENT, "attempt": attempt, "provider": "scripted"}


def response(types: Sequence[str], text: str, status: str) -> dict[str, Any]:
    """Return a final response; only an attempt can have succeeded."""
    if status == "success" and types and types[-1] in _ENDABLE:
        return {"status": "success", "payload": {"response": text}, "metadata": {"n": len(types)}}
    error = {"code": "AGENT_ERROR", "message": text}
    return {"status": "error", "payload": None, "metadata": {}, "error": error}


def in_pieces(given: Mapping[str, Any], pieces: int) -> dict[str, Any]:
    """Return a response unchanged, or with its text in ``pieces`` pieces."""
    if pieces == 1:
        return dict(given)
    name, member = ("payload", "response") if given["payload"] else ("error", "message")
    text = given[name][member]
    cut = len(text) // pieces
    return {**given, name: {**given[name], member: LongText((text[:cut], text[cut:]))}}
