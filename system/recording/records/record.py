"""The record of one execution: header, envelope, events, final response.

A record is immutable, down to its payloads. ``to_dict`` and ``from_dict`` are inverse to each
other, members of a later version included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from system.ports import Json, JsonObject, SideEffectClass
from system.recording.records.envelope_hash import hash_text
from system.recording.records.event import EventType, ExecutionEvent
from system.recording.records.event_chain import event_chain
from system.recording.records.frozen_json import EMPTY, FrozenJson
from system.recording.records.header import ExecutionHeader
from system.storage.codec import canonical

VERSION: Final = 1
EFFECTS_MEMBER: Final = "sideEffectClass"
"""The member of the header, and of a response's metadata, with the class of the effects."""

_CLASSES: Final = frozenset(SideEffectClass)
_NULL: Final = FrozenJson(b"null")


def _quoted(name: str) -> bytes:
    """Return a name in quotes, as canonical JSON has it."""
    return canonical(name)[1:-1]


@dataclass(frozen=True, slots=True)
class ExecutionRecord:
    """``frozen_response`` is None until the execution has ended; it may hold any JSON value.

    ``version`` is None in a record of another program. ``others`` are top-level members that
    this version does not know.
    """

    header: ExecutionHeader
    frozen_envelope: FrozenJson
    events: tuple[ExecutionEvent, ...] = ()
    frozen_response: FrozenJson | None = None
    version: int | None = VERSION
    others: FrozenJson = EMPTY

    @property
    def execution_id(self) -> str:
        """The id of the execution."""
        return self.header.execution_id

    @property
    def envelope_hash(self) -> str:
        """The hash of the envelope, as the header has it."""
        return self.header.envelope_hash

    @property
    def envelope(self) -> JsonObject:
        """The envelope; every access returns a new value."""
        return self.frozen_envelope.members()

    @property
    def final_response(self) -> JsonObject | None:
        """The final response; every access returns a new value."""
        return None if self.frozen_response is None else self.frozen_response.members()

    @property
    def side_effects(self) -> SideEffectClass:
        """The class of the effects: that of the header, or IRREVERSIBLE if the response says so.

        Without either, or with a class that this version does not know, IRREVERSIBLE is assumed.
        """
        response = self.final_response or {}
        metadata = response.get("metadata")
        worst = SideEffectClass.IRREVERSIBLE
        if isinstance(metadata, dict) and metadata.get(EFFECTS_MEMBER) == worst:
            return worst
        stated = self.header.side_effects
        return SideEffectClass(stated) if stated in _CLASSES else worst

    @property
    def router_decision(self) -> Json:
        """The payload of the last ROUTER_DECISION event, or None (docs/file-formats.md)."""
        return self._router_decision().value()

    def _router_decision(self) -> FrozenJson:
        for event in reversed(self.events):
            if event.type == EventType.ROUTER_DECISION:
                return event.frozen_payload
        return _NULL

    @property
    def unknown_types(self) -> tuple[str, ...]:
        """The types of events that this version does not know, in their order."""
        return tuple(event.type for event in self.events if not event.is_known)

    def to_dict(self) -> JsonObject:
        """Return the record as the JSON object of its file."""
        members: JsonObject = {
            "header": self.header.to_dict(),
            "envelope": self.envelope,
            "routerDecision": self.router_decision,
            "events": [event.to_dict() for event in self.events],
            "finalResponse": self.final_response,
        }
        if self.version is not None:
            members["v"] = self.version
        return {**self.others.members(), **members}

    def sealed(self) -> ExecutionRecord:
        """Return the record with the hashes of its header computed again."""
        header = replace(
            self.header,
            event_count=len(self.events),
            event_chain=event_chain(self.header.envelope_hash, self.events),
            record_hash=None,
        )
        unsealed = replace(self, header=header)
        return replace(self, header=replace(header, record_hash=unsealed.compute_hash()))

    def compute_hash(self) -> str:
        """Return the hash of the whole record without ``header.recordHash``.

        It detects damage and careless edits, not an attacker that recomputes it.
        """
        return hash_text(replace(self, header=replace(self.header, record_hash=None)).encoded())

    def encoded(self) -> bytes:
        """Return the canonical JSON of ``to_dict``."""
        return b"{%s}" % b",".join([b'"%s":%s' % member for member in self._members()])

    def indented(self) -> bytes:
        """Return the same JSON on lines of its own for each member and each event."""
        members = b",\n".join([b'  "%s": %s' % member for member in self._members(b"\n    ")])
        return b"{\n%s\n}\n" % members

    def _members(self, gap: bytes = b"") -> list[tuple[bytes, bytes]]:
        """Return the canonical JSON of each member by name, sorted; ``gap`` precedes an event."""
        events = [gap + event.encoded() for event in self.events]
        members = [
            (b"envelope", self.frozen_envelope.encoded),
            (b"events", b"[%s]" % b",".join(events)),
            (b"finalResponse", (self.frozen_response or _NULL).encoded),
            (b"header", canonical(self.header.to_dict())),
            (b"routerDecision", self._router_decision().encoded),
        ]
        if self.version is not None:
            members.append((b"v", b"%d" % self.version))
        if self.others == EMPTY:
            return members
        named = {name.decode(): encoded for name, encoded in members}
        named |= {name: canonical(value) for name, value in self.others.members().items()}
        # Sorted before they are quoted, because the quoted names may have another order.
        return [(_quoted(name), named[name]) for name in sorted(named)]
