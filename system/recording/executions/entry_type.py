"""The types of log records, which are those of the entries of the write-ahead log.

The table in docs/file-formats.md (The write-ahead log) defines their numbers.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from system.recording.records.event import EventType


class EntryType(IntEnum):
    """The type of an entry; the first six are the events."""

    INTENT_RECEIVED = 1
    AGENT_ATTEMPT_START = 2
    AGENT_ATTEMPT_END = 3
    FALLBACK_TRIGGERED = 4
    ROUTER_DECISION = 5
    FINAL_RESPONSE = 6
    START = 16
    """Header and envelope of an execution."""
    NOT_REPLAYABLE = 17
    """A reason why an execution cannot be replayed."""
    PART = 18
    """A piece of a payload, but not the last one; the pieces are adjacent."""


ENTRY_OF_EVENT: Final[dict[str, int]] = {each: int(EntryType[each.name]) for each in EventType}
EVENT_OF_ENTRY: Final = {ENTRY_OF_EVENT[each]: each for each in EventType}
