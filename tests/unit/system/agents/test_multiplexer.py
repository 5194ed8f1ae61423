"""Few conversations for many sessions: eviction, waiting, and the order of slots."""

from __future__ import annotations

import asyncio
import errno

import pytest

from system.agents.multiplexer import Multiplexer, WaitingLine
from system.errors import UnknownProvider
from system.ports import ProviderError
from system.runtime import Options
from tests.unit.system.agents.fake_provider import FakeProvider
from tests.unit.system.agents.room import Room, record_of
from tests.unit.system.agents.slots import state, three_roots


def test_the_least_recently_used_conversation_makes_room() -> None:
    room, (ada, bob, cleo) = three_roots(slots=2)
    # The creation of Cleo has suspended Ada.
    assert [state(room, agent) for agent in (ada, bob, cleo)] == ["SUSPENDED", "ACTIVE", "ACTIVE"]
    room.say(bob, "hello")

    room.say(ada, "hello")

    assert room.provider.asked == [
        "send c2", "sent c2", "suspend c3", "stop c3", "restore c1", "send c1", "sent c1",
    ]  # fmt: skip
    assert [state(room, agent) for agent in (ada, bob, cleo)] == ["ACTIVE", "ACTIVE", "SUSPENDED"]
    room.check_no_failures()


def test_a_conversation_that_is_held_is_never_suspended() -> None:
    room, (_, bob, cleo) = three_roots(slots=1)
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(cleo, "hello")
    room.say(bob, "hello")
    assert room.provider.asked == ["send c3"]

    gate.set()
    room.settle()

    assert room.provider.asked[1:4] == ["sent c3", "suspend c3", "stop c3"]
    assert room.named("Bob").turns == 1
    room.check_no_failures()


def test_who_waits_for_a_slot_gets_it_in_the_order_of_coming() -> None:
    room, (ada, bob, cleo) = three_roots(slots=1)
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    for agent in (cleo, ada, bob):
        room.say(agent, "hello")

    gate.set()
    room.settle()

    sent = [call for call in room.provider.asked if call.startswith("send ")]
    assert sent == ["send c3", "send c1", "send c2"]
    room.check_no_failures()


def test_a_creation_waits_for_a_slot_as_well() -> None:
    room, (_, _, cleo) = three_roots(slots=1)
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(cleo, "hello")
    creating = room.world.loop.create_task(room.runtime.create_agent("Dan"))
    room.settle()
    assert not creating.done()

    gate.set()
    room.run(creating)

    assert state(room, creating.result()) == "ACTIVE"
    assert state(room, cleo) == "SUSPENDED"


def test_a_slot_in_which_a_conversation_is_being_created_is_not_free() -> None:
    room = Room(Options(slots=1))
    room.open()
    gate = asyncio.Event()
    room.provider.hooks["create"] = gate.wait
    creating = [
        room.world.loop.create_task(room.runtime.create_agent(name)) for name in ("Ada", "Bob")
    ]
    room.settle()
    assert room.provider.asked == ["identities ", "create c1"]

    gate.set()
    for task in creating:
        room.run(task)

    assert room.provider.asked[2:] == ["suspend c1", "stop c1", "create c2"]


def test_a_slot_in_which_a_conversation_is_being_taken_up_is_not_free() -> None:
    room, (ada, bob, _) = three_roots(slots=1)
    gate = asyncio.Event()
    room.provider.hooks["restore"] = gate.wait
    room.say(ada, "hello")
    room.say(bob, "hello")
    assert room.provider.asked == ["suspend c3", "stop c3", "restore c1"]

    gate.set()
    room.settle()

    assert [room.named(name).turns for name in ("Ada", "Bob")] == [1, 1]
    room.check_no_failures()


def test_when_one_record_cannot_be_written_another_conversation_makes_room() -> None:
    room, (ada, bob, cleo) = three_roots(slots=2)
    room.files.fail("replace", record_of(room.session(bob)), errno.ENOSPC)

    room.say(ada, "hello")

    assert [state(room, agent) for agent in (ada, bob, cleo)] == ["ACTIVE", "ACTIVE", "SUSPENDED"]
    assert room.named("Ada").turns == 1
    room.check_no_failures()


def test_when_no_record_can_be_written_the_turn_is_tried_again() -> None:
    room, (ada, bob, cleo) = three_roots(slots=2)
    for agent in (bob, cleo):
        room.files.fail("replace", record_of(room.session(agent)), errno.ENOSPC)
    room.say(ada, "hello")
    assert room.named("Ada").turns == 0

    room.settle(1)

    assert room.named("Ada").turns == 1
    room.check_no_failures()


def test_a_slot_is_free_again_after_a_creation_that_the_provider_refused() -> None:
    room = Room(Options(slots=1))
    room.open()
    room.provider.fail("create")
    with pytest.raises(ProviderError):
        room.create("Ada")

    room.create("Ada")

    assert len(room.runtime.view().agents) == 1


def test_a_slot_that_is_released_wakes_few_of_those_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    number, waits, wait = 20, list[object](), WaitingLine.wait

    async def counted(line: WaitingLine, place: object) -> None:
        waits.append(place)
        await wait(line, place)

    monkeypatch.setattr(WaitingLine, "wait", counted)
    room = Room(Options(slots=1))
    room.open()
    names = [f"agent {each}" for each in range(number)]
    agents = [room.create(name) for name in names]
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    for agent in reversed(agents):
        room.say(agent, "hello")

    gate.set()
    room.settle()

    assert [room.named(name).turns for name in names] == [1] * number
    assert len(set(map(id, waits))) == number - 1
    assert len(waits) <= 5 * number


def test_a_waiter_that_gives_up_lets_the_next_one_have_its_turn() -> None:
    room, (ada, _, cleo) = three_roots(slots=1)
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(cleo, "hello")
    giving_up = room.world.loop.create_task(room.runtime.create_agent("Dan"))
    room.settle()
    room.say(ada, "hello")

    giving_up.cancel()
    gate.set()
    room.settle()

    assert room.named("Ada").turns == 1
    room.check_no_failures()


def test_a_conversation_that_was_taken_while_another_failed_to_close_is_not_suspended() -> None:
    room, (ada, bob, cleo) = three_roots(slots=2)
    gate = asyncio.Event()
    room.files.fail("replace", record_of(room.session(bob)), errno.ENOSPC)
    room.provider.hooks["suspend"] = gate.wait
    room.say(ada, "wants a slot")
    held = asyncio.Event()
    room.provider.hooks["send"] = held.wait
    room.say(cleo, "takes her own")
    room.provider.hooks.pop("suspend")

    gate.set()
    room.settle()
    assert room.provider.asked[:2] == ["suspend c2", "send c3"]
    assert "suspend c3" not in room.provider.asked
    held.set()
    room.settle(1)

    assert [room.named(name).turns for name in ("Ada", "Cleo")] == [1, 1]
    room.check_no_failures()


def test_every_provider_has_slots_of_its_own() -> None:
    other = FakeProvider()
    mine = FakeProvider()
    room = Room(Options(slots=1), {"scripted": mine, "other": other})
    room.open()

    room.create("Ada")
    room.create("Bob", provider="other")

    assert mine.asked == ["identities ", "create c1"]
    assert other.asked == ["identities ", "create c1"]


@pytest.mark.parametrize(("names", "known"), [("ba", "a, b"), ("", "none")])
def test_an_unknown_provider_is_refused_with_the_known_ones(names: str, known: str) -> None:
    with pytest.raises(UnknownProvider, match=rf"provider 'x' is not there; known are {known}$"):
        Multiplexer({name: FakeProvider() for name in names}, 1).pool("x")
