"""One event of an execution."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from json.encoder import encode_basestring_ascii as _quoted
from typing import Final

from system.ports import Json, JsonObject
from system.recording.records.frozen_json import EMPTY, FrozenJson
from system.storage.codec import DEEPEST, canonical


class EventType(StrEnum):
    """The events of an execution; ``docs/recording.md`` has the payload of each."""

    INTENT_RECEIVED = "INTENT_RECEIVED"
    AGENT_ATTEMPT_START = "AGENT_ATTEMPT_START"
    AGENT_ATTEMPT_END = "AGENT_ATTEMPT_END"
    FALLBACK_TRIGGERED = "FALLBACK_TRIGGERED"
    ROUTER_DECISION = "ROUTER_DECISION"
    FINAL_RESPONSE = "FINAL_RESPONSE"


EVENT_LEVELS: Final = DEEPEST + 1
"""The nesting of an event: one level above the deepest payload."""

_NAMES: Final = frozenset(EventType)


@dataclass(frozen=True, slots=True)
class ExecutionEvent:
    """Event number ``seq`` (from 1) of an execution.

    ``type`` is an ``EventType``, or a text of a later version, which is kept. ``timestamp`` is
    ISO 8601 in UTC, for people only: events are ordered by ``seq``, and equality ignores it.
    ``others`` are members that this version does not know.
    """

    seq: int
    type: str
    frozen_payload: FrozenJson
    timestamp: str | None = field(default=None, compare=False)
    others: FrozenJson = EMPTY

    @property
    def payload(self) -> Json:
        """The payload; every access returns a new value."""
        return self.frozen_payload.value()

    @property
    def is_known(self) -> bool:
        """Whether this version knows the type."""
        return self.type in _NAMES

    def to_dict(self) -> JsonObject:
        """Return the event as the JSON object of a record."""
        members: JsonObject = {
            "seq": self.seq, "type": str(self.type), "payload": self.payload,
        }  # fmt: skip
        if self.timestamp is not None:
            members["timestamp"] = self.timestamp
        return {**self.others.members(), **members} if self.others != EMPTY else members

    def encoded(self) -> bytes:
        """Return the canonical JSON of ``to_dict``."""
        if self.others != EMPTY:
            return canonical(self.to_dict(), EVENT_LEVELS)
        time = "" if self.timestamp is None else f',"timestamp":{_quoted(self.timestamp)}'
        return b'{"payload":%s,"seq":%d%s,"type":%s}' % (
            self.frozen_payload.encoded, self.seq, time.encode(), _quoted(self.type).encode(),
        )  # fmt: skip
