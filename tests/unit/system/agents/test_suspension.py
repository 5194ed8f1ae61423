"""Suspension of a conversation: its saved state, waiting for it, and failures."""

from __future__ import annotations

import asyncio
import errno

import pytest

from system.agents.provider_state import ProviderState
from system.errors import StorageFull
from tests.unit.system.agents.room import SECOND_NS, record_of
from tests.unit.system.agents.slots import state, three_roots


def test_a_suspension_keeps_a_blob_with_its_date_and_its_size_is_noted() -> None:
    room, (_, bob, _) = three_roots(slots=3)
    room.say(bob, "hello")

    room.run(room.runtime.suspend(bob))

    kept = room.agent(bob).log.record
    assert kept is not None
    assert ProviderState.of_encoded(kept.provider_state_blob) == ProviderState(
        "c2", 1, b"blob of c2"
    )
    last = room.lines(room.session(bob))[-1]
    assert (last.event, last.data) == (
        "suspend.result", {"state_size": len(kept.provider_state_blob)},
    )  # fmt: skip


def test_a_suspension_waits_for_the_turn_that_holds_the_conversation() -> None:
    room, (_, bob, _) = three_roots(slots=3)
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
    room, (ada, _, _) = three_roots(slots=1)

    room.run(room.runtime.suspend(ada))

    assert room.provider.asked == []


def test_a_conversation_that_a_failed_turn_has_dropped_is_suspended_in_its_record() -> None:
    room, (_, bob, _) = three_roots(slots=3)
    room.provider.fail("send")
    room.run(room.runtime.send(bob, "hello"))
    room.settle()
    assert state(room, bob) == "ACTIVE"

    room.run(room.runtime.suspend(bob))

    assert state(room, bob) == "SUSPENDED"


def test_a_suspension_waits_for_a_conversation_that_is_being_taken_up() -> None:
    room, (_, bob, _) = three_roots(slots=3)
    room.provider.fail("send")
    room.run(room.runtime.send(bob, "hello"))
    room.settle()
    gate = asyncio.Event()
    room.provider.hooks["restore"] = gate.wait
    room.world.loop.advance(2 * SECOND_NS)
    assert room.provider.asked[-1] == "restore c2"
    suspending = room.world.loop.create_task(room.runtime.suspend(bob))
    room.settle()
    assert not suspending.done()

    gate.set()
    room.run(suspending)

    assert room.provider.asked[-2:] == ["suspend c2", "stop c2"]
    assert state(room, bob) == "SUSPENDED"


def test_a_suspension_that_the_provider_refuses_keeps_no_blob() -> None:
    room, (_, bob, _) = three_roots(slots=3)
    room.provider.fail("suspend")
    room.provider.fail("stop")

    room.run(room.runtime.suspend(bob))

    kept = room.agent(bob).log.record
    assert kept is not None
    assert ProviderState.of_encoded(kept.provider_state_blob) == ProviderState("c2")
    assert state(room, bob) == "SUSPENDED"


def test_a_suspension_whose_record_cannot_be_written_leaves_the_conversation_open() -> None:
    # Planted bug R20: the slot was given up first, and the conversation leaked.
    room, (_, bob, _) = three_roots(slots=3)
    room.files.fail("replace", record_of(room.session(bob)), errno.ENOSPC)

    with pytest.raises(StorageFull):
        room.run(room.runtime.suspend(bob))

    assert room.provider.asked == ["suspend c2"]
    assert state(room, bob) == "ACTIVE"
    room.say(bob, "hello")
    assert room.provider.asked == ["suspend c2", "send c2", "sent c2"]


def test_a_suspension_after_a_refused_restoration_leaves_a_record_that_says_suspended() -> None:
    # After a failed barrier the file may have the old record or the new one.
    room, (_, bob, _) = three_roots(slots=3)
    room.run(room.runtime.suspend(bob))
    room.files.fail("sync_dir", f"agents/{room.session(bob)}", errno.EIO)
    room.run(room.runtime.send(bob, "hello"))
    room.settle()

    room.run(room.runtime.suspend(bob))

    assert state(room, bob) == "SUSPENDED"


def test_a_suspension_that_was_refused_is_repeated() -> None:
    room, (_, bob, _) = three_roots(slots=3)
    room.files.fail("replace", record_of(room.session(bob)), errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        room.run(room.runtime.suspend(bob))

    room.run(room.runtime.suspend(bob))

    assert state(room, bob) == "SUSPENDED"


def test_an_agent_that_ends_while_it_is_being_suspended_closes_once() -> None:
    room, (ada, _, cleo) = three_roots(slots=1)
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
    assert room.named("Ada").turns == 1
    room.check_no_failures()


def test_a_suspension_that_waits_while_its_agent_ends_leaves_the_record_of_the_end() -> None:
    room, (_, bob, _) = three_roots(slots=3)
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.run(room.runtime.send(bob, "hello"))
    room.settle()
    suspending = room.world.loop.create_task(room.runtime.suspend(bob))
    ending = room.world.loop.create_task(room.runtime.terminate(bob))
    room.settle()
    assert not suspending.done()

    gate.set()
    room.run(suspending)
    room.run(ending)
    room.settle()

    assert state(room, bob) == "TERMINATED"
    room.check_no_failures()


def test_a_turn_waits_while_its_own_conversation_is_being_suspended() -> None:
    room, (_, bob, _) = three_roots(slots=3)
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
    assert room.named("Bob").turns == 1
    room.check_no_failures()


def test_a_runtime_that_closes_ends_the_conversation_whose_record_the_disk_refuses() -> None:
    room, (_, bob, _) = three_roots(slots=3)
    room.files.fail("replace", record_of(room.session(bob)), errno.ENOSPC, sticky=True)

    with pytest.raises(StorageFull):
        room.run(room.runtime.close())

    assert {f"stop c{number}" for number in (1, 2, 3)} <= set(room.provider.asked)


def test_a_runtime_that_closes_suspends_every_conversation() -> None:
    room, agents = three_roots(slots=3)

    room.run(room.runtime.close())

    room.kill()
    room.open(start=False)
    assert [state(room, agent) for agent in agents] == ["SUSPENDED"] * 3
    assert room.runtime.report.suspended == []
    assert room.world.clock.now_ns < SECOND_NS
