"""Resources are released after use: descriptors, timers, memory of ended agents."""

from __future__ import annotations

import asyncio

from system.runtime import Options
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import SECOND_NS, Room, log_of, opened


def test_an_agent_whose_provider_is_not_there_holds_no_descriptor() -> None:
    room, ada = opened()
    path = log_of(room.session(ada))
    room.kill()
    room.providers = {"other": room.provider}
    room.open()

    room.say(ada, "hello")

    calls = [call for call in room.files.calls if call.endswith(path)]
    assert calls[-1] == f"close {path}"
    assert len(room.named("Ada").pending) == 1


def test_an_agent_that_has_ended_leaves_no_reminder() -> None:
    room, ada, bob = parent_and_child()
    for agent_id in (ada, bob):
        room.say(agent_id, script(("remind_me", {"delay_ns": SECOND_NS, "payload": "tea"})))

    room.run(room.runtime.terminate(bob))
    room.settle()

    assert len(room.run(room.runtime.triggers.open_rows())) == 1


def test_an_agent_that_has_ended_keeps_nothing_of_what_was_said() -> None:
    room, ada = opened()
    room.say(ada, "hello")
    assert len(room.agent(ada).history.exchanges) == 1

    room.say(ada, script(("complete", {"result": 1})))

    assert room.agent(ada).history.exchanges == []
    assert room.named("Ada").turns == 2


def test_a_turn_that_waits_for_a_slot_does_not_begin_when_the_runtime_closes() -> None:
    room = Room(Options(slots=1))
    room.open()
    agents = [room.create(name) for name in ("Ada", "Bob", "Cleo")]
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    for agent_id in agents:
        room.say(agent_id, "hello")
    assert len(room.provider.prompts) == 1

    closing = room.world.loop.create_task(room.runtime.close())
    room.settle()
    gate.set()
    room.run(closing)

    assert len(room.provider.prompts) == 1
    assert [len(room.named(name).pending) for name in ("Ada", "Bob", "Cleo")] == [0, 1, 1]
    room.check_no_failures()
