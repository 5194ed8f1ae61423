"""The runtime: opened, idle, closed."""

from __future__ import annotations

import errno

import pytest

from system.agents import event
from system.durable.errors import UnknownSchedule
from system.durable.schedule import ScheduleSpec
from system.errors import (
    AgentStopped,
    Closed,
    RootInUse,
)
from system.ports import JsonObject
from system.runtime import Runtime
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import Room, opened, record_of


def test_open_recovers_and_starts(room: Room) -> None:
    room.runtime = room.run(Runtime.open(room.host, room.providers))
    ada = room.create("Ada")

    room.say(ada, "hello")

    assert room.named("Ada").turns == 1


def test_no_turn_runs_before_the_start(room: Room) -> None:
    room.open(start=False)
    ada = room.create("Ada")
    room.say(ada, "hello")
    assert room.provider.prompts == []

    room.start()
    room.settle()

    assert room.shown() == [("text", "hello")]


def test_idle_returns_when_nobody_has_anything_to_do() -> None:
    room, ada = opened()
    room.run(room.runtime.send(ada, script(("spawn_agent", {"name": "Bob"}))))

    room.run(room.runtime.idle())

    assert (room.named("Ada").turns, room.named("Ada").running) == (1, False)
    assert room.named("Bob").turns == 1


def test_a_closed_runtime_refuses_every_call() -> None:
    room, ada = opened()
    triggers, activities, schedules = (
        room.runtime.triggers, room.runtime.activities, room.runtime.schedules,
    )  # fmt: skip
    room.say(ada, "hello")
    store = room.runtime.records
    assert store is not None
    (execution_id,) = store.list_all()
    room.run(room.runtime.close())
    before = dict(room.world.disk.files())

    for call in (
        triggers.open_rows(),
        triggers.import_legacy([]),
        triggers.retry("t"),
        activities.perform("activity:a", "pay", {}),
        activities.undecided(),
        schedules.create(ScheduleSpec("every", "60")),
        schedules.living(),
        room.runtime.create_agent("Bob"),
        room.runtime.send(ada, 1),
        room.runtime.terminate(ada),
        room.runtime.suspend(ada),
        room.runtime.acknowledge("m"),
        room.runtime.close(),
    ):
        with pytest.raises(Closed, match="open it again"):
            room.run(call)
    with pytest.raises(Closed, match="open it again"):
        room.start()
    for read in (lambda: list(store.list_all()), lambda: store.load(execution_id)):
        with pytest.raises(Closed, match="open it again"):
            read()
    with pytest.raises(Closed, match="open it again"):
        store.invalidate(execution_id, "wrong", "Anna")
    assert dict(room.world.disk.files()) == before


def test_reading_makes_no_database(room: Room) -> None:
    room.open()
    schedules = room.runtime.schedules

    assert room.run(room.runtime.triggers.open_rows()) == []
    assert room.run(schedules.living()) == []
    for call in (schedules.delete("s"), schedules.pause("s"), schedules.resume("s")):
        with pytest.raises(UnknownSchedule):
            room.run(call)
    assert not room.exists("state.db")


def test_the_root_of_a_closed_runtime_is_free(room: Room) -> None:
    room.open()
    with pytest.raises(RootInUse):
        room.run(Runtime.recover(room.host, room.providers))
    room.run(room.runtime.close())

    room.open()

    assert room.runtime.report.epoch == 2


def test_a_record_that_cannot_be_written_does_not_keep_the_root_locked() -> None:
    room, ada = opened()
    bob = room.create("Bob")
    session = room.session(ada)
    room.files.fail("replace", record_of(session), errno.EIO)

    with pytest.raises(OSError, match="Input/output error"):
        room.run(room.runtime.close())

    room.open()
    assert room.runtime.report.suspended == [session]
    assert room.named("Ada").alive
    assert room.named("Bob").agent_id == bob


def test_a_log_that_cannot_be_closed_does_not_keep_the_root_locked() -> None:
    room, _ = opened()
    room.files.fail("close", "events.jsonl", errno.EIO)

    room.run(room.runtime.close())

    room.open()
    assert room.named("Ada").alive


def test_an_agent_that_is_being_created_is_not_shown(room: Room) -> None:
    room.open()
    ada = room.create("Ada")
    room.say(ada, "hello")
    room.files.fail("mkdir", "", errno.ENOSPC)
    room.say(ada, script(("spawn_agent", {"name": "Bob"})))
    bob = str(room.provider.results[-1]["agent_id"])

    assert [agent.name for agent in room.runtime.view().agents] == ["Ada"]
    for call in (room.runtime.send(bob, "hello"), room.runtime.suspend(bob)):
        with pytest.raises(AgentStopped, match="it was never created"):
            room.run(call)


def test_an_agent_that_is_gated_by_the_log_of_a_life_before_stays_so(room: Room) -> None:
    # Planted bug R6: permits were logged and never restored.
    room.open()
    ada = room.create("Ada")
    control: JsonObject = {"control_id": "g", "by": "x"}
    permit: JsonObject = {"control_id": "p", "by": "x"}
    room.run(room.agent(ada).log.commit(
        lambda: [(event.GATE, control), (event.PERMIT_TURN, permit)]
    ))  # fmt: skip

    room.reopen()

    assert (room.named("Ada").gated, room.named("Ada").permits) == (True, 1)
