"""The record of one session: its provider, its state, and the provider's own data.

The record makes a boot faster. If record and log differ, the log is right.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from enum import StrEnum
from operator import itemgetter
from typing import Final, NamedTuple

from system.errors import BadSeal, IllegalTransition, NewerFormat, SessionRecordDamaged
from system.ports import JsonObject
from system.storage.codec import seal, unseal

VERSION: Final = 1


class SessionState(StrEnum):
    """The states of a session record."""

    ACTIVE = "ACTIVE"
    """A conversation is open; a crash closes it."""
    SUSPENDED = "SUSPENDED"
    """No conversation is open; a turn restores it."""
    TERMINATED = "TERMINATED"
    """The agent has ended."""


_MEMBERS: Final = {"model", "provider_name", "provider_state_blob", "session_id", "state", "v"}
_texts_of: Final = itemgetter(
    "provider_name", "model", "state", "provider_state_blob", "session_id"
)
_NEXT: Final = {
    SessionState.ACTIVE: (SessionState.SUSPENDED, SessionState.TERMINATED),
    SessionState.SUSPENDED: (SessionState.ACTIVE, SessionState.TERMINATED),
    SessionState.TERMINATED: (),
}


class SessionRecord(NamedTuple):
    """The content of ``session.json``; ``session_id`` is 32 hex digits."""

    session_id: str
    provider_name: str
    model: str
    state: SessionState
    provider_state_blob: bytes = b""

    def moved_to(
        self, state: SessionState, provider_state_blob: bytes | None = None
    ) -> SessionRecord:
        """Return this record in another state, with a new blob if one is given."""
        blob = self.provider_state_blob if provider_state_blob is None else provider_state_blob
        return SessionRecord(self.session_id, self.provider_name, self.model, state, blob)

    def check_follows(self, before: SessionRecord, path: str) -> None:
        """Raise ``IllegalTransition`` (it names ``path``) if this cannot come after ``before``."""
        if self.state not in _NEXT[before.state]:
            raise IllegalTransition(path, f"it is {before.state} and cannot become {self.state}")


def encode_record(record: SessionRecord) -> bytes:
    """Return the bytes of ``session.json``; raise ``NotPlainJson`` for a text with surrogates."""
    return (
        seal(
            {
                "model": record.model,
                "provider_name": record.provider_name,
                "provider_state_blob": b64encode(record.provider_state_blob).decode("ascii"),
                "session_id": record.session_id,
                "state": record.state.value,
                "v": VERSION,
            }
        )
        + b"\n"
    )


def decode_record(encoded: bytes, session_id: str, path: str) -> SessionRecord:
    """Return the record in the bytes of ``path``, which must belong to this session.

    Raises ``SessionRecordDamaged`` or ``NewerFormat``; both name ``path``.
    """
    try:
        if not encoded.endswith(b"\n"):
            raise BadSeal("it does not end with a line end")
        return _from_members(unseal(encoded[:-1]), session_id, path)
    except ValueError as error:
        raise SessionRecordDamaged(path, str(error)) from error


def _from_members(members: JsonObject, session_id: str, path: str) -> SessionRecord:
    """Decode a record; raise ``ValueError`` for members, a state or base64 that are wrong."""
    version = members.get("v")
    if isinstance(version, int) and version > VERSION:
        raise NewerFormat(path, f"it has format v={version}, known is v={VERSION}")
    is_record = version == VERSION and members.keys() == _MEMBERS
    if not is_record or set(map(type, _texts_of(members))) != {str}:
        raise BadSeal("it is sealed, but it is not a session record")
    provider_name, model, state, blob, owner = _texts_of(members)
    if owner != session_id:
        raise BadSeal(f"it belongs to session_id={owner!r}")
    return SessionRecord(
        session_id, provider_name, model, SessionState(state), b64decode(blob, validate=True)
    )
