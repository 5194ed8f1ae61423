"""The chain of hashes over the events of a record (docs/file-formats.md, Records)."""

from __future__ import annotations

from collections.abc import Iterable

from system.recording.records.envelope_hash import hash_text
from system.recording.records.event import ExecutionEvent


def event_chain(envelope_hash: str, events: Iterable[ExecutionEvent]) -> str:
    """Return the last link of the chain, whose first link is the envelope hash.

    Each further link is the hash of the text of the link before it and the canonical event.
    """
    return chain_of_encoded(envelope_hash, (event.encoded() for event in events))


def chain_of_encoded(link: str, encoded: Iterable[bytes]) -> str:
    """Return the last link of the chain that continues with canonical events after ``link``."""
    for event in encoded:
        link = hash_text(link.encode() + event)
    return link
