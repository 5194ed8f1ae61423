"""Executions for the tests of recording: a clock and ids that count, and a usual record."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Final, TypeVar

from system.host import RealClock
from system.ports import Json, JsonObject
from system.recording.recorder import ExecutionRecorder, InMemoryExecutionRecorder
from system.recording.records.event import EventType
from system.recording.records.record import ExecutionRecord
from system.recording.stores.memory_store import InMemoryExecutionStore

T = TypeVar("T")

START_NS: Final = 1_790_000_000_000_000_000
AGENT: Final = "a" * 32
ENVELOPE: Final[JsonObject] = {
    "agent": "Ada", "provider": "scripted", "model": "m",
    "payload": [{"sender_name": "USER", "kind": "text", "payload": "Good morning"}],
    "routingMetadata": {"agent_id": AGENT, "turn_id": "b" * 32},
}  # fmt: skip
RESPONSE: Final[JsonObject] = {
    "status": "success", "payload": {"response": "Hello"}, "metadata": {"provider": "scripted"},
}  # fmt: skip
FAILURE: Final[JsonObject] = {
    "status": "error", "payload": None, "metadata": {},
    "error": {"code": "AGENT_ERROR", "message": "Failed"},
}  # fmt: skip
EVENTS: Final[tuple[tuple[EventType, Json], ...]] = (
    (EventType.INTENT_RECEIVED, {"turnId": "b" * 32, "sessionId": "c" * 32, "messageIds": []}),
    (EventType.ROUTER_DECISION, {"agent": AGENT, "name": "Ada", "retryOf": None}),
    (EventType.AGENT_ATTEMPT_START, {"agent": AGENT, "attempt": 1, "provider": "scripted"}),
    (EventType.AGENT_ATTEMPT_END, {"agent": AGENT, "attempt": 1, "status": "success"}),
)


class CountingClock(RealClock):
    """A wall clock that a test sets; it does not go on by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = START_NS

    def wall_ns(self) -> int:
        return self.now_ns

    def monotonic_ns(self) -> int:
        return self.now_ns


class CountingIds:
    """Ids that count from 1, or that a test has put into ``planned``."""

    def __init__(self) -> None:
        self.planned: list[str] = []
        self.last = 0

    def uuid_hex(self) -> str:
        return self.random_hex(32)

    def random_hex(self, digits: int) -> str:
        if self.planned:
            return self.planned.pop(0)
        self.last += 1
        return f"{self.last:0{digits}x}"


def run(work: Coroutine[None, None, T]) -> T:
    """Return the result of a coroutine."""
    return asyncio.run(work)


def memory() -> tuple[CountingClock, CountingIds, InMemoryExecutionStore]:
    """Return a clock, ids and a store in memory."""
    clock = CountingClock()
    return clock, CountingIds(), InMemoryExecutionStore(clock)


def record_events(
    recorder: ExecutionRecorder, events: Iterable[tuple[EventType, Json]] = EVENTS
) -> None:
    """Record the events of a usual execution."""
    for event_type, payload in events:
        recorder.record_event(event_type, payload)


def finished(response: object = RESPONSE, envelope: object = ENVELOPE) -> ExecutionRecord:
    """Return the record of a usual execution."""
    clock, ids, store = memory()
    recorder = InMemoryExecutionRecorder(clock, ids, store)
    recorder.start(envelope)
    record_events(recorder)
    record = run(recorder.finalize(response))
    assert record is not None
    return record
