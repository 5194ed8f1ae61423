"""Few conversations for many sessions: who is suspended, who waits, what a failure leaves."""

from __future__ import annotations

import asyncio
import errno
import json

import pytest

from system.agents.multiplexer import Multiplexer
from system.agents.provider_state import ProviderState
from system.errors import StorageFull, UnknownProvider
from system.ports import ProviderError
from system.runtime import Options
from tests.unit.system.agents.fake_provider import FakeProvider, play
from tests.unit.system.agents.room import SECOND_NS, Room, record_of

NAMES = ("Ada", "Bob", "Cleo")


def opened(slots: int = 2) -> tuple[Room, list[str]]:
    """Three roots; their conversations are called c1, c2 and c3."""
    room = Room(Options(slots=slots))
    room.open()
    agents = [room.create(name) for name in NAMES]
    room.provider.asked.clear()
    return room, agents


def record(room: Room, agent_id: str) -> dict[str, str]:
    loaded = json.loads(room.read(record_of(room.agent(agent_id).session_id)))
    assert isinstance(loaded, dict)
    return loaded


def state(room: Room, agent_id: str) -> str:
    return record(room, agent_id)["state"]


def test_the_least_recently_used_conversation_makes_room() -> None:
    room, (ada, bob, cleo) = opened(slots=2)
    # The creation of Cleo has suspended Ada.
    assert [state(room, agent) for agent in (ada, bob, cleo)] == ["SUSPENDED", "ACTIVE", "ACTIVE"]
    room.say(bob, "hello")

    room.say(ada, "hello")

    assert room.provider.asked == [
        "send c2", "sent c2", "suspend c3", "stop c3", "restore c1", "send c1", "sent c1",
    ]  # fmt: skip
    assert [state(room, agent) for agent in (ada, bob, cleo)] == ["ACTIVE", "ACTIVE", "SUSPENDED"]
    room.calm()


def test_a_conversation_that_is_held_is_never_suspended() -> None:
    room, (_, bob, cleo) = opened(slots=1)
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(cleo, "hello")
    room.say(bob, "hello")
    assert room.provider.asked == ["send c3"]

    gate.set()
    room.settle()

    assert room.provider.asked[1:4] == ["sent c3", "suspend c3", "stop c3"]
    assert len(room.named("Bob").turns) == 1
    room.calm()


def test_who_waits_for_a_slot_gets_it_in_the_order_of_coming() -> None:
    room, (ada, bob, cleo) = opened(slots=1)
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    for agent in (cleo, ada, bob):
        room.say(agent, "hello")

    gate.set()
    room.settle()

    sent = [call for call in room.provider.asked if call.startswith("send ")]
    assert sent == ["send c3", "send c1", "send c2"]
    room.calm()


def test_a_creation_waits_for_a_slot_as_well() -> None:
    room, (_, _, cleo) = opened(slots=1)
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


def test_a_suspension_keeps_a_blob_with_its_date_and_its_size_is_noted() -> None:
    room, (_, bob, _) = opened(slots=3)
    room.say(bob, "hello")

    room.run(room.runtime.suspend(bob))

    kept = room.agent(bob).record
    assert kept is not None
    assert ProviderState.of_encoded(kept.provider_state_blob) == ProviderState(
        "c2", 1, b"blob of c2"
    )
    last = room.lines(room.agent(bob).session_id)[-1]
    assert (last.event, last.data) == (
        "suspend.result", {"state_size": len(kept.provider_state_blob)},
    )  # fmt: skip


def test_a_suspension_waits_for_the_turn_that_holds_the_conversation() -> None:
    room, (_, bob, _) = opened(slots=3)
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(bob, "hello")
    suspending = room.world.loop.create_task(room.runtime.suspend(bob))
    room.settle()
    assert not suspending.done()

    gate.set()
    room.run(suspending)

    assert state(room, bob) == "SUSPENDED"


def test_a_conversation_that_is_not_open_needs_no_suspension() -> None:
    room, (ada, _, _) = opened(slots=1)

    room.run(room.runtime.suspend(ada))

    assert room.provider.asked == []


def test_a_restored_conversation_is_given_its_blob_and_its_history() -> None:
    room, (_, bob, _) = opened(slots=3)
    room.say(bob, play(say="one"))
    room.run(room.runtime.suspend(bob))

    room.say(bob, play(say="two"))

    assert room.provider.blobs == [b"blob of c2"]
    (exchange,) = room.provider.openings[-1].history
    assert (exchange.prompt, exchange.response) == (room.provider.prompts[0], "one")
    assert room.events(room.agent(bob).session_id)[-4] == "session.restored"


def test_a_blob_that_is_older_than_the_log_is_not_used() -> None:
    # Hole R15: suspended after one turn, restored, a second turn, a crash.
    room, (_, bob, _) = opened(slots=3)
    room.say(bob, "one")
    room.run(room.runtime.suspend(bob))
    room.say(bob, "two")
    room.provider.blobs.clear()
    room.reopen()

    room.say(bob, "three")

    assert room.provider.blobs == [b""]
    assert len(room.provider.openings[-1].history) == 2


def test_a_conversation_that_is_lost_is_created_from_the_log() -> None:
    room, (_, bob, _) = opened(slots=3)
    room.say(bob, play(say="one"))
    room.run(room.runtime.suspend(bob))
    room.provider.kept.remove("c2")

    room.say(bob, "two")

    assert len(room.provider.openings[-1].history) == 1
    restored = [
        line.data["identity"]
        for line in room.lines(room.agent(bob).session_id)
        if line.event == "session.restored"
    ]
    assert restored == ["c1"]
    kept = room.agent(bob).record
    assert kept is not None
    assert ProviderState.of_encoded(kept.provider_state_blob) == ProviderState("c1")
    room.calm()


def test_the_identity_of_a_conversation_is_durable_before_anything_is_said_to_it() -> None:
    # Hole R17: it was kept at the first eviction only.
    room = Room()
    room.open()
    ada = room.create("Ada")
    room.say(ada, play(("spawn_agent", {"name": "Kim"})))
    kim = room.named("Kim").agent_id
    room.reopen(start=False)

    kept = room.agent(kim).record
    assert kept is not None
    assert ProviderState.of_encoded(kept.provider_state_blob).identity == "c2"
    assert room.agent(kim).history.identity == "c2"


def test_a_suspension_that_the_provider_refuses_keeps_no_blob() -> None:
    room, (_, bob, _) = opened(slots=3)
    room.provider.fail("suspend")
    room.provider.fail("stop")

    room.run(room.runtime.suspend(bob))

    kept = room.agent(bob).record
    assert kept is not None
    assert ProviderState.of_encoded(kept.provider_state_blob) == ProviderState("c2")
    assert state(room, bob) == "SUSPENDED"


def test_a_suspension_whose_record_cannot_be_written_leaves_the_conversation_open() -> None:
    # Hole R20: the slot was given up first, and the conversation leaked.
    room, (_, bob, _) = opened(slots=3)
    room.files.fail("replace", record_of(room.agent(bob).session_id), errno.ENOSPC)

    with pytest.raises(StorageFull):
        room.run(room.runtime.suspend(bob))

    assert room.provider.asked == ["suspend c2"]
    assert state(room, bob) == "ACTIVE"
    room.say(bob, "hello")
    assert room.provider.asked == ["suspend c2", "send c2", "sent c2"]


def test_when_one_record_cannot_be_written_another_conversation_makes_room() -> None:
    room, (ada, bob, cleo) = opened(slots=2)
    room.files.fail("replace", record_of(room.agent(bob).session_id), errno.ENOSPC)

    room.say(ada, "hello")

    assert [state(room, agent) for agent in (ada, bob, cleo)] == ["ACTIVE", "ACTIVE", "SUSPENDED"]
    assert len(room.named("Ada").turns) == 1
    room.calm()


def test_when_no_record_can_be_written_the_turn_is_tried_again() -> None:
    room, (ada, bob, cleo) = opened(slots=2)
    for agent in (bob, cleo):
        room.files.fail("replace", record_of(room.agent(agent).session_id), errno.ENOSPC)
    room.say(ada, "hello")
    assert room.named("Ada").turns == ()

    room.settle(1)

    assert len(room.named("Ada").turns) == 1
    room.calm()


def test_a_conversation_whose_record_cannot_be_written_is_closed_again() -> None:
    room, (_, bob, _) = opened(slots=3)
    room.run(room.runtime.suspend(bob))
    room.files.fail("replace", record_of(room.agent(bob).session_id), errno.ENOSPC)
    room.provider.asked.clear()
    room.say(bob, "hello")
    assert room.provider.asked == ["restore c2", "stop c2"]
    assert state(room, bob) == "SUSPENDED"

    room.settle(1)

    assert len(room.named("Bob").turns) == 1
    room.calm()


def test_a_slot_is_free_again_after_a_creation_that_the_provider_refused() -> None:
    room = Room(Options(slots=1))
    room.open()
    room.provider.fail("create")
    with pytest.raises(ProviderError):
        room.create("Ada")

    room.create("Ada")

    assert len(room.runtime.view().agents) == 1


def test_a_waiter_that_gives_up_lets_the_next_one_have_its_turn() -> None:
    room, (ada, _, cleo) = opened(slots=1)
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(cleo, "hello")
    giving_up = room.world.loop.create_task(room.runtime.create_agent("Dan"))
    room.settle()
    room.say(ada, "hello")

    giving_up.cancel()
    gate.set()
    room.settle()

    assert len(room.named("Ada").turns) == 1
    room.calm()


def test_an_agent_that_ends_while_it_is_being_suspended_closes_once() -> None:
    room, (ada, _, cleo) = opened(slots=1)
    gate = asyncio.Event()
    room.provider.hooks["suspend"] = gate.wait
    room.say(ada, "hello")
    assert room.provider.asked == ["suspend c3"]
    ending = room.world.loop.create_task(room.runtime.terminate(cleo))
    room.settle()

    gate.set()
    room.run(ending)
    room.settle()

    assert room.provider.asked.count("stop c3") == 1
    assert state(room, cleo) == "TERMINATED"
    assert len(room.named("Ada").turns) == 1
    room.calm()


def test_a_turn_waits_while_its_own_conversation_is_being_suspended() -> None:
    room, (_, bob, _) = opened(slots=3)
    gate = asyncio.Event()
    room.provider.hooks["suspend"] = gate.wait
    suspending = room.world.loop.create_task(room.runtime.suspend(bob))
    room.settle()
    room.say(bob, "hello")
    assert room.provider.asked == ["suspend c2"]

    gate.set()
    room.run(suspending)
    room.settle()

    assert room.provider.asked[1:3] == ["stop c2", "restore c2"]
    assert len(room.named("Bob").turns) == 1
    room.calm()


def test_a_conversation_that_was_taken_while_another_failed_to_close_is_not_suspended() -> None:
    room, (ada, bob, cleo) = opened(slots=2)
    gate = asyncio.Event()
    room.files.fail("replace", record_of(room.agent(bob).session_id), errno.ENOSPC)
    room.provider.hooks["suspend"] = gate.wait
    room.say(ada, "wants a slot")
    held = asyncio.Event()
    room.provider.hooks["send"] = held.wait
    room.say(cleo, "takes her own")
    room.provider.hooks.pop("suspend")

    gate.set()
    room.settle()
    assert room.provider.asked[:2] == ["suspend c2", "send c3"]
    held.set()
    room.settle(1)

    assert [len(room.named(name).turns) for name in ("Ada", "Cleo")] == [1, 1]
    room.calm()


def test_every_provider_has_slots_of_its_own() -> None:
    other = FakeProvider()
    mine = FakeProvider()
    room = Room(Options(slots=1), {"scripted": mine, "other": other})
    room.open()

    room.create("Ada")
    room.create("Bob", provider="other")

    assert mine.asked == ["identities ", "create c1"]
    assert other.asked == ["identities ", "create c1"]


def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownProvider, match=r"provider 'x' is not there; known are a, b$"):
        Multiplexer({"b": FakeProvider(), "a": FakeProvider()}, 1).pool("x")


def test_a_runtime_that_closes_suspends_every_conversation() -> None:
    room, agents = opened(slots=3)

    room.run(room.runtime.close())

    room.kill()
    room.open(start=False)
    assert [state(room, agent) for agent in agents] == ["SUSPENDED"] * 3
    assert room.runtime.report.suspended == []
    assert room.world.clock.now_ns < SECOND_NS
