"""A turn: presented, answered, committed in one line, applied; and which agents may take one."""

from __future__ import annotations

import asyncio

import pytest

from sim.choices import SeededChoices
from system.agents import event
from system.ports import JsonObject
from system.runtime import Options, Runtime
from system.storage.framing import Framing
from tests.unit.system.agents.fake_provider import FakeProvider, script
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import Room, opened


@pytest.mark.parametrize("framing", list(Framing))
def test_a_turn_is_one_line_between_its_start_and_what_it_delivered(framing: Framing) -> None:
    room, ada = opened(Options(framing=framing))

    message_id = room.say(ada, script(say="heard"))

    lines = room.lines(room.session(ada))
    assert [line.event for line in lines] == [
        "session.created", "agent.created", "message.enqueued",
        "turn.start", "turn.complete", "message.delivered",
    ]  # fmt: skip
    turn_id = lines[3].data["turn_id"]
    assert lines[4].data == {
        "turn_id": turn_id, "trigger_id": None, "presented": [message_id], "response": "heard",
        "provider": {"name": "scripted", "identity": "c1"}, "outbox": [], "spawned": [],
        "terminate": False,
    }  # fmt: skip
    assert lines[5].data == {"message_id": message_id}
    assert room.named("Ada").last_turns == (turn_id,)


def test_a_call_that_comes_after_the_answer_is_refused() -> None:
    room, ada = opened()
    room.say(ada, "hello")
    assert room.provider.tools is not None

    late = room.provider.tools.call("late", "poke", {"to": "USER"})

    assert late == {"error": "the turn is over; nothing may follow"}


def test_everything_that_is_pending_is_shown_at_once_oldest_first(room: Room) -> None:
    room.open(start=False)
    ada = room.create("Ada")
    for text in ["one", "two", "three"]:
        room.run(room.runtime.send(ada, text))

    room.start()
    room.settle()

    assert len(room.provider.prompts) == 1
    assert room.shown() == [("text", "one"), ("text", "two"), ("text", "three")]


def test_a_message_that_arrives_during_a_turn_is_shown_in_the_next_one() -> None:
    # Planted bug R4: it was called delivered without having been seen.
    room, ada = opened()
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    first = room.say(ada, "first")
    second = room.say(ada, "second")
    assert room.named("Ada").pending == (first, second)

    gate.set()
    room.settle()

    assert [room.shown(turn) for turn in (0, 1)] == [[("text", "first")], [("text", "second")]]
    assert room.named("Ada").pending == ()


def test_what_an_agent_found_in_its_inbox_is_delivered_with_the_turn() -> None:
    room, ada = opened()
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(ada, script(("check_inbox", {})))
    room.say(ada, "second")

    gate.set()
    room.settle()

    (found,) = room.provider.results
    assert isinstance(found["messages"], list)
    assert len(found["messages"]) == 1
    assert len(room.provider.prompts) == 1
    assert room.named("Ada").pending == ()


def test_turns_of_different_agents_overlap() -> None:
    room, ada = opened()
    bob = room.create("Bob")
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait

    room.say(ada, "to Ada")
    room.say(bob, "to Bob")

    assert (room.named("Ada").running, room.named("Bob").running) == (True, True)
    assert len(room.provider.prompts) == 2
    gate.set()
    room.settle()
    assert (room.named("Ada").running, room.named("Bob").running) == (False, False)


# -- who may run -------------------------------------------------------------------------


def test_a_gated_child_takes_one_turn_for_each_permit() -> None:
    room, ada, bob = parent_and_child()
    room.say(ada, script(("gate", {"name": "Bob"})))
    room.say(bob, "one")
    assert (room.named("Bob").gated, room.named("Bob").turns) == (True, 1)

    room.say(ada, script(("permit_turn", {"name": "Bob"})))

    assert (room.named("Bob").permits, room.named("Bob").turns) == (0, 2)
    assert room.lines(room.named("Bob").session_id)[-2].data["permitted"] is True
    room.say(bob, "two")
    assert room.named("Bob").turns == 2
    room.say(ada, script(("ungate", {"name": "Bob"})))
    assert (room.named("Bob").gated, room.named("Bob").turns) == (False, 3)


def test_a_gate_that_is_opened_before_a_permitted_turn_begins_leaves_it_nothing_to_use_up() -> None:
    """In whatever order the two lines reach the log; the turn may wait for it behind the other."""
    reported = {_ungated_at_once(seed) for seed in range(20)}

    # The gate may also be opened while the turn is under way.
    assert reported - {("turn.start", False)} == {("tool.ungate", False), ("turn.start", True)}


def _ungated_at_once(seed: int) -> tuple[str, bool]:
    """Return which line was first, and whether the turn says that it has used up its permit."""
    room, ada, bob = parent_and_child()
    name: JsonObject = {"name": "Bob"}
    room.say(ada, script(("gate", name), ("permit_turn", name)))
    before = len(room.lines(room.session(bob)))
    room.world.schedule = SeededChoices(seed)

    async def both() -> None:
        ungate = room.runtime.send(ada, script(("ungate", name)))
        await asyncio.gather(ungate, room.runtime.send(bob, "one"))

    room.run(both())
    room.settle()
    lines = {line.event: line.data for line in room.lines(room.session(bob))[before:]}
    first = next(each for each in lines if each in ("tool.ungate", "turn.start"))
    return first, "permitted" in lines["turn.complete"]


def test_a_permit_of_a_gate_that_was_closed_during_a_permitted_turn_is_not_used_up_by_it() -> None:
    room, ada, bob = parent_and_child()
    name: JsonObject = {"name": "Bob"}
    room.say(ada, script(("gate", name), ("permit_turn", name)))
    answer = asyncio.Event()

    async def once() -> None:
        del room.provider.hooks["send"]
        await answer.wait()

    room.provider.hooks["send"] = once
    room.say(bob, "one")
    room.say(ada, script(("ungate", name), ("gate", name), ("permit_turn", name)))
    assert (room.named("Bob").running, room.named("Bob").permits) == (True, 1)

    answer.set()
    room.settle()

    assert (room.named("Bob").gated, room.named("Bob").permits) == (True, 1)
    assert "permitted" not in room.lines(room.session(bob))[-2].data
    room.reopen()
    assert room.named("Bob").permits == 1
    room.say(bob, "two")
    assert (room.named("Bob").turns, room.named("Bob").permits) == (3, 0)


def test_an_agent_that_is_gated_while_it_waits_for_a_slot_takes_no_turn() -> None:
    room = Room(Options(slots=1))
    room.open()
    ada, bob = room.create("Ada"), room.create("Bob")
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(ada, "hello")
    waiting = room.say(bob, "hello")
    control: JsonObject = {"control_id": "c", "by": ada}
    room.run(room.agent(bob).log.commit(lambda: [(event.GATE, control)]))

    gate.set()
    room.settle()

    assert room.named("Bob").pending == (waiting,)
    assert len(room.provider.prompts) == 1
    room.check_no_failures()


def test_an_agent_that_is_ended_while_it_waits_for_its_turn_takes_none() -> None:
    room, ada = opened()
    room.provider.fail("send")
    room.say(ada, "hello")
    held = asyncio.Event()

    async def hold() -> None:
        async with room.agent(ada).work.turn:
            await held.wait()
            ended: JsonObject = {"agent_id": ada, "reason": "operator", "returned": []}
            await room.agent(ada).log.commit(lambda: [(event.AGENT_TERMINATED, ended)])

    task = room.world.loop.create_task(hold())
    room.settle(1)
    held.set()
    room.run(task)
    room.settle()

    assert len(room.provider.prompts) == 1
    room.check_no_failures()


def test_an_agent_whose_provider_is_not_there_waits_quietly() -> None:
    room, ada = opened()
    room.kill()
    room.providers = {"another": FakeProvider()}
    room.open()

    message_id = room.say(ada, "hello")

    assert room.named("Ada").pending == (message_id,)
    assert not room.named("Ada").running
    room.check_no_failures()


def test_a_turn_that_ends_its_agent_is_its_last() -> None:
    room, ada = opened()
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(ada, script(("complete", {"result": 42})))
    late = room.say(ada, "too late")

    gate.set()
    room.settle()

    assert room.events(room.session(ada))[-3:] == [
        "turn.complete", "message.delivered", "agent.terminated",
    ]  # fmt: skip
    assert room.lines(room.session(ada))[-3].data["returned"] == [late]
    reason = "the recipient has ended"
    assert room.to_user() == [
        ("response", 42),
        ("error", {"reason": reason, "message_id": late}),
    ]
    assert len(room.provider.prompts) == 1
    assert not room.named("Ada").alive
    assert room.state(room.session(ada)) == "TERMINATED"
    room.check_no_failures()


def test_a_runtime_that_closes_begins_no_other_turn() -> None:
    room, ada = opened()
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(ada, "first")
    room.say(ada, "second")
    closing = room.world.loop.create_task(room.runtime.close())
    room.settle()
    assert not closing.done()

    gate.set()
    room.run(closing)

    assert len(room.provider.prompts) == 1


def test_a_failure_while_the_runtime_closes_is_not_slept_over() -> None:
    room, ada = opened()
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.provider.fail("send")
    room.say(ada, "hello")
    closing = room.world.loop.create_task(room.runtime.close())
    room.settle()

    gate.set()
    room.settle()

    assert closing.done()


async def closed(runtime: Runtime) -> None:
    await runtime.close()


def test_a_runtime_that_closes_does_not_wait_for_a_pause_to_end() -> None:
    room, ada = opened()
    room.provider.fail("send", 9)
    room.say(ada, "hello")
    closing = room.world.loop.create_task(closed(room.runtime))
    room.settle()

    assert closing.done()
