"""A line that waits in the queue of an agent's log."""

from __future__ import annotations

from typing import NamedTuple

from system.ports import JsonObject


class QueuedLine(NamedTuple):
    """A line that a log must have once; the log has it if its history knows ``key``."""

    key: str
    event: str
    data: JsonObject
