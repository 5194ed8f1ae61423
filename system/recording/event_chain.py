"""The chain of hashes over the events of a record (rule X18)."""

from __future__ import annotations

from collections.abc import Iterable

from system.recording.envelope_hash import hash_text
from system.recording.event import ExecutionEvent


def event_chain(envelope_hash: str, events: Iterable[ExecutionEvent]) -> str:
    """Return the last link of the chain: the first is the envelope hash.

    Each further one is the hash of the text of the link before it and the canonical event.
    """
    link = envelope_hash
    for event in events:
        link = hash_text(link.encode() + event.encoded())
    return link
