"""The hash of an envelope, which names the request (docs/file-formats.md, Records).

Version 2 is the SHA-256 of the canonical JSON of the envelope without its top-level member
``routingMetadata``. Records of other programs name no version; some of these programs hash the
whole envelope. Both hashes are accepted on reading.
"""

from __future__ import annotations

import re
from enum import Enum
from hashlib import sha256
from typing import Final, NamedTuple

from system.recording.records.frozen_json import FrozenJson
from system.storage.codec import canonical

HASH_VERSION: Final = 2
EXCLUDED: Final = "routingMetadata"
_WITH_ROUTING: Final = b'%b,"routingMetadata":%b}'

HASH_TEXT: Final = re.compile("sha256:[0-9a-f]{64}")


class HashFunction(Enum):
    """The function that an envelope hash was made with."""

    VERSION_2 = "hash version 2"
    WHOLE_ENVELOPE = "hash without a version, over the whole envelope"
    WITHOUT_ROUTING = "hash without a version, without routingMetadata"


def hash_text(data: bytes) -> str:
    """Return the SHA-256 of bytes as ``sha256:`` and 64 hex digits."""
    return f"sha256:{sha256(data).hexdigest()}"


def compute_envelope_hash(envelope: object) -> str:
    """Return the hash of an envelope, version 2.

    Raises ``NotPlainJson`` for anything that is not a JSON object in its plain form.
    """
    return hash_of_envelope(FrozenJson.of_object(envelope, "envelope"))


def hash_of_envelope(envelope: FrozenJson) -> str:
    """Return the hash of a frozen envelope, version 2."""
    if b'"routingMetadata"' not in envelope.encoded:
        return hash_text(envelope.encoded)
    members = envelope.members()
    members.pop(EXCLUDED, None)
    return hash_text(canonical(members))


class FrozenEnvelope(NamedTuple):
    """The canonical JSON of an envelope, an object, and its hash."""

    encoded: bytes
    hash: str

    @classmethod
    def of(cls, envelope: object) -> FrozenEnvelope:
        """Freeze the plain form of an envelope; raises ``NotPlainJson``."""
        if isinstance(envelope, FrozenEnvelope):
            return envelope
        frozen = FrozenJson.of_object(envelope, "envelope")
        return cls(frozen.encoded, hash_of_envelope(frozen))

    @classmethod
    def of_parts(cls, hashed: bytes, routing: bytes) -> FrozenEnvelope:
        """Return the envelope of two canonical JSON objects.

        ``routing`` is its member ``routingMetadata``. ``hashed`` has the others, at least one, and
        their names sort before ``routingMetadata``.
        """
        return cls(_WITH_ROUTING % (hashed[:-1], routing), hash_text(hashed))


def matching_function(
    envelope: FrozenJson, envelope_hash: str, version: int | None
) -> HashFunction | None:
    """Return the function that gives ``envelope_hash``, or None if the envelope has another.

    ``version`` is ``hashVersion`` of the header; None for a record of another program.
    """
    if envelope_hash == hash_of_envelope(envelope):
        return HashFunction.VERSION_2 if version is not None else HashFunction.WITHOUT_ROUTING
    if version is None and envelope_hash == hash_text(envelope.encoded):
        return HashFunction.WHOLE_ENVELOPE
    return None
