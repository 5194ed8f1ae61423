"""The header of a record: identity, hashes, and whether it can be replayed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from system.ports import JsonObject
from system.recording.records.envelope_hash import HASH_VERSION
from system.recording.records.frozen_json import EMPTY, FrozenJson
from system.storage.codec import canonical


class Reason(StrEnum):
    """Why a record cannot be replayed; callers of a recorder give other texts."""

    EXECUTION_INCOMPLETE = "execution_incomplete"
    RECORDING_FAILURE = "recording_failure"
    MANUALLY_INVALIDATED = "manually_invalidated"
    RECORD_CORRUPTED = "record_corrupted"
    ENVELOPE_INVALID = "envelope_invalid"


@dataclass(frozen=True, slots=True)
class Invalidation:
    """The invalidation of a record: why, by, and when (ISO 8601 in UTC).

    ``earlier`` is the reason that the record had before, or None. ``others`` are members that
    this version does not know.
    """

    reason: str
    by: str
    utc_iso: str
    earlier: str | None = None
    others: FrozenJson = EMPTY

    def to_dict(self) -> JsonObject:
        """Return the invalidation as the JSON object of a header."""
        members: JsonObject = {"reason": self.reason, "by": self.by, "utcIso": self.utc_iso}
        if self.earlier is not None:
            members["details"] = [str(self.earlier)]
        return {**self.others.members(), **members}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionHeader:
    """``replayable`` is true if and only if ``replayable_reason`` is None.

    ``hash_version`` is None in a record of another program, which then has neither
    ``event_count`` nor ``event_chain`` nor ``record_hash``. ``record_hash`` is also None as
    long as the record is not sealed. ``side_effects`` is None where it was not recorded.
    ``others`` are members that this version does not know.
    """

    execution_id: str
    created_utc_iso: str
    envelope_hash: str
    replayable: bool = False
    replayable_reason: str | None = Reason.EXECUTION_INCOMPLETE
    hash_version: int | None = HASH_VERSION
    side_effects: str | None = None
    re_execution_of: str | None = None
    invalidation: Invalidation | None = None
    event_count: int | None = None
    event_chain: str | None = None
    record_hash: str | None = None
    others: FrozenJson = EMPTY

    @property
    def is_foreign(self) -> bool:
        """Whether another program made the record, so that only its envelope has a hash."""
        return self.hash_version is None

    def to_dict(self) -> JsonObject:
        """Return the header as the JSON object of a record."""
        members: JsonObject = {
            "executionId": self.execution_id,
            "createdUtcIso": self.created_utc_iso,
            "envelopeHash": self.envelope_hash,
            "replayable": self.replayable,
            "replayableReason": _plain(self.replayable_reason),
        }
        optional: JsonObject = {
            "hashVersion": self.hash_version,
            "sideEffectClass": _plain(self.side_effects),
            "reExecutionOf": self.re_execution_of,
            "invalidation": None if self.invalidation is None else self.invalidation.to_dict(),
            "eventCount": self.event_count,
            "eventChain": self.event_chain,
            "recordHash": self.record_hash,
        }
        members.update({name: value for name, value in optional.items() if value is not None})
        return {**self.others.members(), **members}


_AT_START: Final = (
    f'"hashVersion":{HASH_VERSION},"replayable":false,'
    f'"replayableReason":"{Reason.EXECUTION_INCOMPLETE}",'
)


class StartHeader(NamedTuple):
    """The members of a header that are known at the start; ``header`` returns the whole header.

    ``others`` are members of a later version, in a snapshot.
    """

    execution_id: str
    created_utc_iso: str
    envelope_hash: str
    side_effects: str | None
    re_execution_of: str | None = None
    others: FrozenJson = EMPTY

    @classmethod
    def of_header(cls, header: ExecutionHeader) -> StartHeader:
        """Return these members of the header of an execution that has not ended."""
        return cls(
            header.execution_id, header.created_utc_iso, header.envelope_hash,
            header.side_effects, header.re_execution_of, header.others,
        )  # fmt: skip

    def header(self, reason: str | None) -> ExecutionHeader:
        """Return the header, not replayable for a reason, or replayable without one."""
        return ExecutionHeader(
            execution_id=self.execution_id,
            created_utc_iso=self.created_utc_iso,
            envelope_hash=self.envelope_hash,
            replayable=reason is None,
            replayable_reason=reason,
            side_effects=self.side_effects,
            re_execution_of=self.re_execution_of,
            others=self.others,
        )

    def encoded(self) -> bytes:
        """Return the canonical JSON of the header at the start."""
        if self.re_execution_of is not None:
            return canonical(self.header(Reason.EXECUTION_INCOMPLETE).to_dict())
        return (
            f'{{"createdUtcIso":"{self.created_utc_iso}","envelopeHash":"{self.envelope_hash}",'
            f'"executionId":"{self.execution_id}",{_AT_START}"sideEffectClass":"{self.side_effects}"}}'
        ).encode()


HEADER_MEMBERS: Final = frozenset(
    {
        "executionId", "createdUtcIso", "envelopeHash", "replayable", "replayableReason",
        "hashVersion", "sideEffectClass", "reExecutionOf", "invalidation", "eventCount",
        "eventChain", "recordHash",
    }
)  # fmt: skip
"""The members that this version knows."""


def _plain(text: str | None) -> str | None:
    """Return a text as plain str, because members of an enum are no plain JSON."""
    return None if text is None else str(text)
