"""Ids and names that are no plain texts: the typed error of an id that is not known.

The files after a refused call are compared byte for byte with those before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from system.durable.activity import Decision
from system.durable.errors import (
    BadActivity,
    BadSchedule,
    BadTrigger,
    NoRecipient,
    UnknownActivity,
    UnknownSchedule,
    UnknownTrigger,
)
from system.durable.schedule import ScheduleSpec
from system.durable.trigger import TriggerSpec
from system.errors import BadName, NotPlainJson, UnknownAgent, UnknownMessage
from system.recording.offline_store import OfflineRecords
from system.recording.records.errors import RecordNotFoundError
from system.recording.replays.replay_cache import CachingReplayEngine, MemoryCache
from system.recording.stores.memory_store import InMemoryExecutionStore
from tests.unit.system.agents.acting import ActingRoom, opened
from tests.unit.system.agents.everything import everything


class Unprintable:
    """Has no ``repr``."""

    def __repr__(self) -> str:
        raise KeyError("repr")


BAD_IDS = {
    "number": 5,
    "negative": -1,
    "truth": True,
    "float": 5.0,
    "more than 64 bits": 1 << 70,
    "more than 4300 digits": 10**5000,
    "bytes": b"5",
    "bytearray": bytearray(b"5"),
    "list": ["5"],
    "dict": {},
    "tuple": ("5",),
    "surrogate": "5\udcff",
    "no repr": Unprintable(),
}
EACH = pytest.mark.parametrize("bad", BAD_IDS.values(), ids=BAD_IDS)

EVERY = ScheduleSpec("every", "3600")
NOW = TriggerSpec("MESSAGE")

CALLS: dict[str, tuple[Callable[[Any, Any], Any], type[Exception]]] = {
    "create_agent": (lambda runtime, bad: runtime.create_agent(bad), BadName),
    "provider": (lambda runtime, bad: runtime.create_agent("Eve", "", bad), NotPlainJson),
    "request_id": (lambda runtime, bad: runtime.create_agent("Eve", request_id=bad), NotPlainJson),
    "send": (lambda runtime, bad: runtime.send(bad, "hello"), UnknownAgent),
    "terminate": (lambda runtime, bad: runtime.terminate(bad), UnknownAgent),
    "suspend": (lambda runtime, bad: runtime.suspend(bad), UnknownAgent),
    "acknowledge": (lambda runtime, bad: runtime.acknowledge(bad), UnknownMessage),
    "emit": (lambda runtime, bad: runtime.emit(NOW, bad), BadTrigger),
    "session": (lambda runtime, bad: runtime.emit(NOW._replace(session_id=bad)), NoRecipient),
    "key": (lambda runtime, bad: runtime.emit(NOW._replace(key=bad)), BadTrigger),
    "retry": (lambda runtime, bad: runtime.triggers.retry(bad), UnknownTrigger),
    "discard": (lambda runtime, bad: runtime.triggers.discard(bad), UnknownTrigger),
    "perform": (lambda runtime, bad: runtime.activities.perform(bad, "mail", {}), BadActivity),
    "action": (lambda runtime, bad: runtime.activities.perform("activity:a", bad, {}), BadActivity),
    "task_id": (
        lambda runtime, bad: runtime.activities.perform("activity:a", "mail", {}, bad),
        NotPlainJson,
    ),
    "resolve": (
        lambda runtime, bad: runtime.activities.resolve(bad, Decision.AGAIN, "Eve"),
        UnknownActivity,
    ),
    "by": (
        lambda runtime, bad: runtime.activities.resolve("activity:5", Decision.AGAIN, bad),
        NotPlainJson,
    ),
    "create": (lambda runtime, bad: runtime.schedules.create(EVERY, bad), BadSchedule),
    "change": (lambda runtime, bad: runtime.schedules.change(bad, EVERY), UnknownSchedule),
    "delete": (lambda runtime, bad: runtime.schedules.delete(bad), UnknownSchedule),
    "pause": (lambda runtime, bad: runtime.schedules.pause(bad), UnknownSchedule),
    "resume": (lambda runtime, bad: runtime.schedules.resume(bad), UnknownSchedule),
}


def with_rows() -> ActingRoom:
    """A root whose rows have the id 5, which SQLite would also find by the number 5."""
    room, _ = opened(OSError("reset"))
    runtime = room.runtime
    room.run(runtime.schedules.create(EVERY, "5"))
    room.run(runtime.emit(NOW, "5"))
    room.run(runtime.activities.perform("activity:5", "mail", {}))
    room.settle()
    return room


@pytest.mark.parametrize(("call", "error"), CALLS.values(), ids=CALLS)
def test_what_is_no_plain_text_names_nothing(
    call: Callable[[Any, Any], Any], error: type[Exception]
) -> None:
    room = with_rows()
    before = everything(room)
    for bad in BAD_IDS.values():
        allowed = (error, NotPlainJson) if isinstance(bad, str) else error
        with pytest.raises(allowed) as caught:
            room.run(call(room.runtime, bad))
        assert len(str(caught.value).encode()) < 2000
    assert everything(room) == before
    room.check_no_failures()


@EACH
def test_what_is_no_plain_text_is_no_name_of_an_agent(bad: Any) -> None:
    assert not with_rows().runtime.is_taken(bad)


@EACH
def test_what_is_no_plain_text_names_no_record(bad: Any) -> None:
    room, _ = opened()
    records = room.runtime.records
    assert records is not None
    memory = InMemoryExecutionStore(room.host.clock)
    assert (records.is_running(bad), records.hash_of(bad)) == (False, None)
    assert (memory.is_running(bad), memory.hash_of(bad)) == (False, None)
    cached = CachingReplayEngine(records, MemoryCache(room.host.clock))
    for call in (
        lambda: records.load(bad),
        lambda: records.invalidate(bad, "wrong", "Eve"),
        lambda: memory.load(bad),
        lambda: memory.invalidate(bad, "wrong", "Eve"),
        lambda: OfflineRecords(room.host).load(bad),
        lambda: cached.replay(bad),
        lambda: cached.invalidate(bad, "wrong", "Eve"),
    ):
        with pytest.raises(RecordNotFoundError):
            call()


@pytest.mark.parametrize("arguments", [None, 5, ["a"], "a"])
def test_arguments_of_an_activity_are_an_object(arguments: Any) -> None:
    room, _ = opened()
    with pytest.raises(BadActivity, match="is not an object; see the section on activities"):
        room.run(room.runtime.activities.perform("activity:a", "mail", arguments))
    assert room.effects.calls == []
