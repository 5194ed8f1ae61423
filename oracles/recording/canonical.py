"""Canonical JSON and its hash: sorted keys, no spaces, ASCII (docs/file-formats.md, Records)."""

from __future__ import annotations

import json
from hashlib import sha256


def canonical(value: object) -> bytes:
    """Return the canonical JSON of plain data."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def hash_text(data: bytes) -> str:
    """Return the SHA-256 of bytes in the notation of records, ``sha256:`` and 64 digits."""
    return f"sha256:{sha256(data).hexdigest()}"


def envelope_hash(envelope: dict[str, object]) -> str:
    """Return the hash of an envelope without its member ``routingMetadata``."""
    hashed = {name: value for name, value in envelope.items() if name != "routingMetadata"}
    return hash_text(canonical(hashed))
