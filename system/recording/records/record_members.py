"""A record from the members of its JSON object: types are checked here, and nothing else.

``structure.py`` checks whether the parts agree.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeVar

from system.ports import Json, JsonObject
from system.recording.records.event import EventType, ExecutionEvent
from system.recording.records.frozen_json import EMPTY, FrozenJson
from system.recording.records.header import HEADER_MEMBERS, ExecutionHeader, Invalidation
from system.recording.records.record import ExecutionRecord
from system.storage.codec import canonical

T = TypeVar("T", str, int, bool, list[Json], JsonObject)

RECORD_MEMBERS: Final = frozenset(
    {"v", "header", "envelope", "routerDecision", "events", "finalResponse"}
)
_EVENT_MEMBERS: Final = frozenset({"seq", "type", "payload", "timestamp"})
_INVALIDATION_MEMBERS: Final = frozenset({"reason", "by", "utcIso", "details"})
_TYPES: Final = {str(known): known for known in EventType}


def from_dict(members: JsonObject) -> ExecutionRecord:
    """Return the record that ``to_dict`` gave; ``ValueError`` names the member that is wrong."""
    response = _optional(members, "finalResponse", dict)
    return ExecutionRecord(
        header_from_dict(_typed(members, "header", dict)),
        _frozen(_typed(members, "envelope", dict)),
        tuple(event_from_dict(event) for event in _typed(members, "events", list)),
        None if response is None else _frozen(response),
        _optional(members, "v", int),
        _others(members, RECORD_MEMBERS),
    )


def header_from_dict(members: JsonObject) -> ExecutionHeader:
    """Return the header that ``ExecutionHeader.to_dict`` gave; raises as ``from_dict``."""
    invalidation = _optional(members, "invalidation", dict)
    return ExecutionHeader(
        execution_id=_typed(members, "executionId", str),
        created_utc_iso=_typed(members, "createdUtcIso", str),
        envelope_hash=_typed(members, "envelopeHash", str),
        replayable=_typed(members, "replayable", bool),
        replayable_reason=_optional(members, "replayableReason", str),
        hash_version=_optional(members, "hashVersion", int),
        side_effects=_optional(members, "sideEffectClass", str),
        re_execution_of=_optional(members, "reExecutionOf", str),
        invalidation=None if invalidation is None else _invalidation(invalidation),
        event_count=_optional(members, "eventCount", int),
        event_chain=_optional(members, "eventChain", str),
        record_hash=_optional(members, "recordHash", str),
        others=_others(members, HEADER_MEMBERS),
    )


def event_from_dict(value: Json) -> ExecutionEvent:
    """Return the event that ``ExecutionEvent.to_dict`` gave; raises as ``from_dict``."""
    members = _typed({"event": value}, "event", dict)
    name = _typed(members, "type", str)
    if "payload" not in members:
        raise ValueError("an event has no payload")
    return ExecutionEvent(
        _typed(members, "seq", int),
        _TYPES.get(name, name),
        FrozenJson(canonical(members["payload"])),
        _optional(members, "timestamp", str),
        _others(members, _EVENT_MEMBERS),
    )


def _invalidation(members: JsonObject) -> Invalidation:
    details = _optional(members, "details", list)
    if details is not None and len(details) != 1:
        raise ValueError(f"details has {len(details)} texts, not one")
    return Invalidation(
        _typed(members, "reason", str),
        _typed(members, "by", str),
        _typed(members, "utcIso", str),
        None if details is None else _typed({"details": details[0]}, "details", str),
        _others(members, _INVALIDATION_MEMBERS),
    )


def _typed(members: JsonObject, name: str, kind: type[T]) -> T:
    value = members.get(name)
    if type(value) is not kind:
        raise ValueError(f"{name} is {type(value).__name__}, not {kind.__name__}")
    return value


def _optional(members: JsonObject, name: str, kind: type[T]) -> T | None:
    return None if members.get(name) is None else _typed(members, name, kind)


def _others(members: JsonObject, known: Collection[str]) -> FrozenJson:
    others: JsonObject = {name: item for name, item in members.items() if name not in known}
    return _frozen(others) if others else EMPTY


def _frozen(members: JsonObject) -> FrozenJson:
    return FrozenJson(canonical(members))
