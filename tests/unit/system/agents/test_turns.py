"""Turns: shown, answered, committed in one line, applied; and everything that goes wrong before."""

from __future__ import annotations

import asyncio
import errno
import json

import pytest

from system.agents import event
from system.errors import NameTaken
from system.ports import JsonObject
from system.runtime import Options, Runtime
from system.storage.framing import Framing
from tests.unit.system.agents.fake_provider import FakeProvider, play
from tests.unit.system.agents.room import SECOND_NS, Room, log_of


def opened(options: Options | None = None) -> tuple[Room, str]:
    room = Room(options)
    room.open()
    return room, room.create("Ada")


def session(room: Room, agent_id: str) -> str:
    return room.agent(agent_id).session_id


def log(room: Room, agent_id: str) -> str:
    return log_of(session(room, agent_id))


@pytest.mark.parametrize("framing", list(Framing))
def test_a_turn_is_one_line_between_its_start_and_what_it_delivered(framing: Framing) -> None:
    room, ada = opened(Options(framing=framing))

    message_id = room.say(ada, play(say="heard"))

    lines = room.lines(session(room, ada))
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
    assert room.named("Ada").turns == (turn_id,)


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
    # Hole R4: it was called delivered without having been seen.
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
    room.say(ada, play(("check_inbox", {})))
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


# -- the provider fails ------------------------------------------------------------------


@pytest.mark.parametrize("call", ["send", "sent"])
def test_a_turn_that_the_provider_breaks_off_has_not_happened(call: str) -> None:
    # Hole R7: half an answer was kept as a whole one.
    room, ada = opened()
    room.provider.fail(call)

    message_id = room.say(ada, play(say="half"))

    assert room.events(session(room, ada))[-2:] == ["turn.start", "turn.failed"]
    assert room.lines(session(room, ada))[-1].data["reason"] == f"{call} failed"
    assert room.named("Ada").pending == (message_id,)
    assert room.named("Ada").turns == ()


def test_a_failed_turn_runs_again_after_a_second_in_a_conversation_taken_up_anew() -> None:
    room, ada = opened()
    room.provider.fail("send")
    room.say(ada, "hello")
    assert room.provider.asked == ["identities ", "create c1", "send c1", "stop c1"]

    room.settle(1)

    assert room.provider.asked[4:] == ["restore c1", "send c1", "sent c1"]
    assert room.named("Ada").pending == ()
    room.calm()


def test_the_pauses_double_up_to_a_minute() -> None:
    room, ada = opened()
    room.provider.fail("restore", 100)
    room.provider.fail("send")
    started_ns = room.world.clock.now_ns
    room.say(ada, "hello")
    moments = []

    async def note() -> None:
        moments.append((room.world.clock.now_ns - started_ns) // SECOND_NS)

    room.provider.hooks["restore"] = note
    room.settle(300)

    assert moments == [1, 3, 7, 15, 31, 63, 123, 183, 243]


def test_effects_of_a_failed_turn_are_forgotten_and_its_names_are_free() -> None:
    room, ada = opened()
    room.provider.fail("sent", 9)
    room.say(ada, play(("spawn_agent", {"name": "Bob"}), ("send_message", {"to": "USER"})))

    room.create("Bob")

    assert room.to_user() == []


def test_a_provider_that_does_not_answer_in_time_has_failed() -> None:
    room, ada = opened(Options(turn_timeout_ns=5 * SECOND_NS))
    never = asyncio.Event()
    room.provider.hooks["send"] = never.wait
    room.say(ada, "hello")
    room.settle(4)
    assert room.named("Ada").running

    room.settle(1)

    assert room.lines(session(room, ada))[-1].data["reason"] == "no answer within 5 s"


@pytest.mark.parametrize(
    ("piece", "reason"),
    [
        (7, "the provider's answer is not text"),
        ("\ud800", "what the provider answered cannot be kept: "),
        ("x" * (16 << 20), "what the provider answered cannot be kept: "),
    ],
    ids=["no text", "lone surrogate", "too large"],
)
def test_an_answer_that_cannot_be_kept_is_a_failure(piece: object, reason: str) -> None:
    room, ada = opened()
    room.provider.pieces = [piece]

    room.say(ada, "hello")

    assert str(room.lines(session(room, ada))[-1].data["reason"]).startswith(reason)
    assert room.named("Ada").stopped == ""


def test_a_message_that_five_turns_have_failed_over_is_dead_and_its_sender_is_told() -> None:
    room, ada = opened()
    room.provider.fail("sent", 5)
    message_id = room.say(ada, "poison")
    room.settle(15)
    assert room.named("Ada").pending == (message_id,)

    room.settle(17)

    reason = "it was presented 5 times, and no turn came to its end"
    assert room.lines(session(room, ada))[-1].event == "message.dead"
    assert room.to_user() == [("error", {"reason": reason, "message_id": message_id})]
    assert room.named("Ada").pending == ()
    assert len(room.provider.prompts) == 5
    room.calm()


def test_the_other_messages_of_a_dead_one_are_shown_again() -> None:
    room, ada = opened()
    room.provider.fail("sent", 5)
    room.say(ada, "poison")
    room.settle(14)
    room.say(ada, "food")

    room.settle(60)

    assert room.shown() == [("text", "food")]
    assert len(room.named("Ada").turns) == 1


def test_a_turn_whose_conversation_cannot_be_opened_was_never_shown() -> None:
    room, ada = opened()
    room.run(room.runtime.suspend(ada))
    room.provider.fail("restore", 6)
    room.say(ada, "hello")

    room.settle(63)

    assert room.named("Ada").pending == ()
    assert "message.dead" not in room.events(session(room, ada))


# -- the disk refuses --------------------------------------------------------------------


def test_a_turn_that_the_disk_has_no_room_for_runs_again_and_counts_as_not_shown() -> None:
    room, ada = opened()

    async def full() -> None:
        room.files.fail("append", log(room, ada), errno.ENOSPC)

    room.provider.hooks["sent"] = full
    room.say(ada, "hello")
    room.settle(300)
    assert len(room.provider.prompts) > 5
    assert room.events(session(room, ada)).count("turn.complete") == 0

    room.provider.hooks.clear()
    room.settle(60)

    assert len(room.named("Ada").turns) == 1
    assert "message.dead" not in room.events(session(room, ada))
    room.calm()


def test_a_start_that_cannot_be_noted_asks_nobody() -> None:
    room, ada = opened()
    message_id = room.run(room.runtime.send(ada, "hello"))
    room.files.fail("append", log(room, ada), errno.ENOSPC)
    room.settle()
    assert room.provider.prompts == []
    assert room.named("Ada").pending == (message_id,)

    room.settle(1)

    assert len(room.provider.prompts) == 1


def test_delivered_lines_that_the_disk_refuses_are_left_out() -> None:
    room, ada = opened()

    async def third_append() -> None:
        room.files.fail("append", log(room, ada), errno.ENOSPC, nth=2)

    room.provider.hooks["sent"] = third_append
    room.say(ada, "hello")

    assert room.events(session(room, ada))[-1] == "turn.complete"
    assert room.named("Ada").pending == ()


def stop_at_commit(room: Room, agent_id: str) -> None:
    async def fail() -> None:
        room.provider.hooks.clear()
        room.files.fail("fdatasync", log(room, agent_id), errno.EIO)

    room.provider.hooks["sent"] = fail


def test_a_failed_barrier_stops_its_agent_and_nobody_else() -> None:
    room, ada = opened()
    bob = room.create("Bob")
    stop_at_commit(room, ada)
    room.say(ada, "hello")

    assert "its barrier failed" in room.named("Ada").stopped
    room.say(bob, "hello")
    assert len(room.named("Bob").turns) == 1
    room.settle(60)
    assert not room.named("Ada").running
    assert len(room.provider.prompts) == 2
    room.calm()


def test_a_name_that_may_have_been_promised_stays_taken_until_the_next_boot() -> None:
    room, ada = opened()
    stop_at_commit(room, ada)
    room.say(ada, play(("spawn_agent", {"name": "Bob"})))

    with pytest.raises(NameTaken):
        room.create("Bob")

    room.reopen()
    assert room.named("Bob").parent_id == ada


def test_a_failure_of_a_stopped_agent_is_not_written_down() -> None:
    room, ada = opened()

    async def stop() -> None:
        room.files.fail("fdatasync", log(room, ada), errno.EIO)
        with pytest.raises(Exception, match="its barrier failed"):
            await room.runtime.send(ada, "more")

    room.provider.hooks["send"] = stop
    room.provider.fail("send")
    room.say(ada, "hello")

    assert room.events(session(room, ada)).count("turn.failed") == 0
    assert not room.named("Ada").running
    room.calm()


# -- who may run -------------------------------------------------------------------------


def family(room: Room) -> str:
    """Bob, a child of Ada; both have had their first turns."""
    ada = room.create("Ada")
    room.say(ada, play(("spawn_agent", {"name": "Bob"})))
    return ada


def test_a_gated_child_takes_one_turn_for_each_permit(room: Room) -> None:
    room.open()
    ada = family(room)
    bob = room.named("Bob").agent_id
    room.say(ada, play(("gate", {"name": "Bob"})))
    room.say(bob, "one")
    assert (room.named("Bob").gated, len(room.named("Bob").turns)) == (True, 1)

    room.say(ada, play(("permit_turn", {"name": "Bob"})))

    assert (room.named("Bob").permits, len(room.named("Bob").turns)) == (0, 2)
    assert room.lines(room.named("Bob").session_id)[-2].data["permitted"] is True
    room.say(bob, "two")
    assert len(room.named("Bob").turns) == 2
    room.say(ada, play(("ungate", {"name": "Bob"})))
    assert (room.named("Bob").gated, len(room.named("Bob").turns)) == (False, 3)


def test_an_agent_that_is_gated_while_it_waits_for_a_slot_takes_no_turn() -> None:
    room = Room(Options(slots=1))
    room.open()
    ada, bob = room.create("Ada"), room.create("Bob")
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(ada, "hello")
    waiting = room.say(bob, "hello")
    control: JsonObject = {"control_id": "c", "by": ada}
    room.run(room.agent(bob).commit(lambda: [(event.GATE, control)]))

    gate.set()
    room.settle()

    assert room.named("Bob").pending == (waiting,)
    assert len(room.provider.prompts) == 1
    room.calm()


def test_an_agent_that_is_ended_while_it_waits_for_its_turn_takes_none() -> None:
    room, ada = opened()
    room.provider.fail("send")
    room.say(ada, "hello")
    held = asyncio.Event()

    async def hold() -> None:
        async with room.agent(ada).turn:
            await held.wait()
            ended: JsonObject = {"agent_id": ada, "reason": "operator", "returned": []}
            await room.agent(ada).commit(lambda: [(event.AGENT_TERMINATED, ended)])

    task = room.world.loop.create_task(hold())
    room.settle(1)
    held.set()
    room.run(task)
    room.settle()

    assert len(room.provider.prompts) == 1
    room.calm()


def test_an_agent_whose_provider_is_not_there_waits_quietly() -> None:
    room, ada = opened()
    room.kill()
    room.providers = {"another": FakeProvider()}
    room.open()

    message_id = room.say(ada, "hello")

    assert room.named("Ada").pending == (message_id,)
    assert not room.named("Ada").running
    room.calm()


def test_a_turn_that_ends_its_agent_is_its_last() -> None:
    room, ada = opened()
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(ada, play(("complete", {"result": 42})))
    late = room.say(ada, "too late")

    gate.set()
    room.settle()

    assert room.events(session(room, ada))[-3:] == [
        "turn.complete", "message.delivered", "agent.terminated",
    ]  # fmt: skip
    assert room.lines(session(room, ada))[-3].data["returned"] == [late]
    reason = "the recipient has ended"
    assert room.to_user() == [
        ("response", 42),
        ("error", {"reason": reason, "message_id": late}),
    ]
    assert len(room.provider.prompts) == 1
    assert not room.named("Ada").alive
    record = json.loads(room.read(f"agents/{session(room, ada)}/session.json"))
    assert record["state"] == "TERMINATED"
    room.calm()


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
