"""Helpers of the tests of the event log: one session, its log, and encoded lines."""

from __future__ import annotations

import pytest

from system.ports import JsonObject
from system.storage.event_log import EventLog
from system.storage.framing import Framing
from system.storage.line import Line, encode_line
from tests.unit.system.faulty_files import FaultyHost

SESSION = "5e" * 16
PATH = f"agents/{SESSION}/events.jsonl"
PENDING = f"agents/{SESSION}/events.pending"
DIRECTORY = f"agents/{SESSION}"
NOW = "2026-03-01T12:00:00.000042Z"

both_framings = pytest.mark.parametrize("framing", Framing)


def encoded(seq: int, text: str, durable: int | None = None) -> bytes:
    """The bytes of a line of this log."""
    return encode_line(Line(seq, NOW, SESSION, "said", {"text": text}, durable), PATH)


def content(*texts: str) -> bytes:
    """The bytes of a whole log."""
    return b"".join(encoded(seq, text) for seq, text in enumerate(texts, 1))


def announced(*lines: bytes) -> bytes:
    """The bytes of a whole pending entry."""
    return b"".join(lines) + b"\n"


def opened(here: FaultyHost, framing: Framing = Framing.FRAMED) -> EventLog:
    return EventLog.open(here.host, PATH, SESSION, framing)


def say(log: EventLog, *texts: str) -> None:
    for text in texts:
        log.append("said", {"text": text})


def said(*texts: str) -> list[tuple[str, JsonObject]]:
    """Events, as `append_all` and `append_unsynced` take them."""
    return [("said", {"text": text}) for text in texts]


def texts(log: EventLog) -> list[object]:
    return [line.data["text"] for line in log.lines()]
