"""Bad input of durable work: a typed error with the remedy, and no file is changed."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from system.durable.errors import (
    BadSchedule,
    BadTrigger,
    KeyOfAnotherSource,
    NoRecipient,
    NotAnOccurrence,
)
from system.durable.schedule import ScheduleSpec
from system.durable.trigger import TriggerSpec
from system.errors import NotPlainJson, PayloadTooLarge
from system.runtime import Options
from tests.unit.system.agents.room import Room, opened

OWN = "the session of Ada"
TRIGGERS = "see the section on triggers in docs/durable.md"
SCHEDULES = "see the section on schedules in docs/durable.md"
PLAIN = "convert it to plain JSON first"

NOW = TriggerSpec("IMMEDIATE", session_id=OWN)
DAILY = ScheduleSpec("cron", "0 9 * * *", session_id=OWN)


BAD_TRIGGERS = {
    "unknown source": (NOW._replace(source="SPAM"), BadTrigger, TRIGGERS),
    "fire_at is not a number": (NOW._replace(fire_at=nan), BadTrigger, TRIGGERS),
    "fire_at is infinite": (NOW._replace(fire_at=inf), BadTrigger, TRIGGERS),
    "payload with NaN": (NOW._replace(payload=[nan]), NotPlainJson, PLAIN),
    "payload with a surrogate": (NOW._replace(payload={"a": "\ud800"}), NotPlainJson, PLAIN),
    "payload over 1 MiB": (NOW._replace(payload="a" * (1 << 20)), PayloadTooLarge, "send its name"),
    "key of another source": (
        NOW._replace(key="memory:a:b"), KeyOfAnotherSource, "use the prefix of its own source",
    ),
    "key of no occurrence": (
        NOW._replace(source="SCHEDULED", key="scheduled:day:60"), NotAnOccurrence, "emits its",
    ),
    "unknown session": (NOW._replace(session_id="e" * 32), NoRecipient, "it is unknown"),
    "unknown session, with a free key": (
        NOW._replace(session_id="e" * 32, key="immediate:k"), NoRecipient, "it is unknown",
    ),
    "no session, of a source that is not routed": (
        NOW._replace(session_id=None, source="RESUME", key="resume:t"), NoRecipient, "not routed",
    ),
}  # fmt: skip

BAD_SCHEDULES = {
    "unknown kind": (DAILY._replace(kind="weekly"), BadSchedule, SCHEDULES),
    "cron with four fields": (DAILY._replace(spec="0 9 * *"), BadSchedule, SCHEDULES),
    "cron with minute 61": (DAILY._replace(spec="61 9 * * *"), BadSchedule, SCHEDULES),
    "cron with an unknown zone": (DAILY._replace(zone="Mars/Olympus"), BadSchedule, SCHEDULES),
    "negative period": (DAILY._replace(kind="every", spec="-5"), BadSchedule, SCHEDULES),
    "malformed time": (DAILY._replace(kind="once", spec="tomorrow"), BadSchedule, SCHEDULES),
    "payload with NaN": (DAILY._replace(payload=nan), NotPlainJson, PLAIN),
    "payload over 1 MiB": (
        DAILY._replace(payload="a" * (1 << 20)), PayloadTooLarge, "send its name",
    ),
    "unknown session": (DAILY._replace(session_id="e" * 32), NoRecipient, "it is unknown"),
}  # fmt: skip


@pytest.fixture
def room() -> Room:
    """Ada, and a database with an open trigger."""
    room, ada = opened(Options(recording=None))
    room.run(room.runtime.emit(TriggerSpec("IMMEDIATE", session_id=room.session(ada), fire_at=3e9)))
    return room


def files_of(room: Room) -> dict[str, bytes]:
    return dict(room.world.disk.files())


@pytest.mark.parametrize(("spec", "error", "remedy"), BAD_TRIGGERS.values(), ids=BAD_TRIGGERS)
def test_a_bad_trigger_is_refused_and_nothing_is_written(
    room: Room, spec: TriggerSpec, error: type[Exception], remedy: str
) -> None:
    before, ada = files_of(room), room.named("Ada")
    own = spec._replace(session_id=ada.session_id) if spec.session_id == OWN else spec
    with pytest.raises(error, match=remedy):
        room.run(room.runtime.emit(own))
    assert files_of(room) == before
    room.run(room.runtime.emit(NOW._replace(session_id=ada.session_id)))


@pytest.mark.parametrize(("spec", "error", "remedy"), BAD_SCHEDULES.values(), ids=BAD_SCHEDULES)
def test_a_bad_schedule_is_refused_and_nothing_is_written(
    room: Room, spec: ScheduleSpec, error: type[Exception], remedy: str
) -> None:
    before, ada = files_of(room), room.named("Ada")
    own = spec._replace(session_id=ada.session_id) if spec.session_id == OWN else spec
    with pytest.raises(error, match=remedy):
        room.run(room.runtime.schedules.create(own, "s"))
    assert files_of(room) == before
    room.run(room.runtime.schedules.create(DAILY._replace(session_id=ada.session_id), "s"))


@pytest.mark.parametrize("spec", [None, "IMMEDIATE", {"source": "IMMEDIATE"}, ("every", "60")])
def test_a_value_that_is_no_specification_is_refused(room: Room, spec: Any) -> None:
    before, schedules = files_of(room), room.runtime.schedules
    with pytest.raises(BadTrigger, match=f"is not a TriggerSpec; {TRIGGERS}"):
        room.run(room.runtime.emit(spec))
    for call in (schedules.create(spec, "s"), schedules.change("s", spec)):
        with pytest.raises(BadSchedule, match=f"is not a ScheduleSpec; {SCHEDULES}"):
            room.run(call)
    assert files_of(room) == before


@pytest.mark.parametrize("collected", [False, True])
def test_a_trigger_for_an_agent_that_has_ended_is_refused(room: Room, collected: bool) -> None:
    bob = room.create("Bob")
    session_id = room.session(bob)
    room.run(room.runtime.terminate(bob))
    room.settle(48 * 3600 if collected else 0)
    before = files_of(room)
    with pytest.raises(NoRecipient, match="unknown" if collected else "ended"):
        room.run(room.runtime.emit(NOW._replace(session_id=session_id)))
    with pytest.raises(NoRecipient):
        room.run(room.runtime.schedules.create(DAILY._replace(session_id=session_id), "s"))
    assert files_of(room) == before


def test_the_first_trigger_of_a_root_is_refused_without_a_database() -> None:
    room, _ = opened(Options(recording=None))
    with pytest.raises(NoRecipient):
        room.run(room.runtime.emit(NOW._replace(session_id="e" * 32)))
    assert room.runtime.view().state_stopped == ""
