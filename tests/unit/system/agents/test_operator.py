"""The operator's calls to agents that stand: what each does, and what each refuses."""

from __future__ import annotations

import asyncio
import errno

import pytest

from system.errors import (
    AgentStopped,
    HasChildren,
    LogStopped,
    StorageFull,
    UnknownAgent,
    UnknownMessage,
)
from system.runtime import Options
from system.storage.framing import Framing
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import Room, log_of, opened

BOTH = pytest.mark.parametrize("framing", list(Framing))


# -- send --------------------------------------------------------------------------------


@BOTH
def test_a_sent_message_is_a_line_in_the_log_of_its_recipient(framing: Framing) -> None:
    room, ada = opened(Options(framing=framing))

    message_id = room.run(room.runtime.send(ada, {"a": 1}))

    line = room.lines(room.session(ada))[2]
    assert line.event == "message.enqueued"
    timestamp = line.data.pop("timestamp")
    assert line.data == {
        "message_id": message_id, "sender": "USER", "recipient": ada, "kind": "text",
        "payload": {"a": 1}, "reply_to": None, "metadata": {},
    }  # fmt: skip
    assert str(timestamp).endswith("Z")


def test_the_same_message_again_changes_nothing(room: Room) -> None:
    room.open()
    ada = room.create("Ada")

    for _ in range(2):
        assert room.run(room.runtime.send(ada, "hello", "m")) == "m"
        room.settle()

    assert room.events(room.session(ada)).count("message.enqueued") == 1
    assert len(room.provider.prompts) == 1


def test_a_message_to_nobody_is_refused() -> None:
    room, _ = opened()

    with pytest.raises(UnknownAgent, match="no agent has this id"):
        room.run(room.runtime.send("nobody", "hello"))


def test_a_message_to_an_agent_that_has_ended_is_refused() -> None:
    room, ada = opened()
    room.run(room.runtime.terminate(ada))

    with pytest.raises(UnknownAgent, match="it has ended"):
        room.run(room.runtime.send(ada, "hello"))


def test_a_message_that_meets_the_end_of_its_recipient_is_refused() -> None:
    room, ada = opened()

    async def both() -> list[object]:
        calls = room.runtime.terminate(ada), room.runtime.send(ada, "hello")
        return list(await asyncio.gather(*calls, return_exceptions=True))

    ended, refused = room.run(both())

    assert ended is None
    assert isinstance(refused, UnknownAgent)
    assert room.events(room.session(ada))[-1] == "agent.terminated"


def test_a_message_that_the_disk_has_no_room_for_was_not_sent() -> None:
    room, ada = opened()
    room.files.fail("append", log_of(room.session(ada)), errno.ENOSPC)
    with pytest.raises(StorageFull):
        room.run(room.runtime.send(ada, "hello"))
    room.settle()
    assert room.provider.prompts == []

    room.say(ada, "again")

    assert room.shown() == [("text", "again")]


def test_a_message_to_a_stopped_agent_is_refused() -> None:
    room, ada = opened()
    room.files.fail("fdatasync", log_of(room.session(ada)), errno.EIO)
    with pytest.raises(LogStopped):
        room.run(room.runtime.send(ada, "hello"))

    with pytest.raises(AgentStopped, match="agent 'Ada' is stopped until the next boot"):
        room.run(room.runtime.send(ada, "again"))


# -- terminate and suspend ---------------------------------------------------------------


@BOTH
def test_an_agent_that_the_operator_ends_is_gone_for_good(framing: Framing) -> None:
    room, ada = opened(Options(framing=framing))

    room.run(room.runtime.terminate(ada))

    last = room.lines(room.session(ada))[-1]
    assert (last.event, last.data) == (
        "agent.terminated", {"agent_id": ada, "reason": "operator", "returned": []},
    )  # fmt: skip
    assert not room.named("Ada").alive
    assert room.provider.asked[-1] == "stop c1"
    room.reopen()
    assert not room.named("Ada").alive


def test_an_agent_with_children_cannot_be_ended() -> None:
    room, ada = opened()
    room.say(ada, script(("spawn_agent", {"name": "Bob"}), ("spawn_agent", {"name": "Eve"})))

    with pytest.raises(HasChildren, match=r"'Ada' has living children \(Bob, Eve\)"):
        room.run(room.runtime.terminate(ada))

    assert room.named("Ada").alive


def test_an_agent_is_ended_between_two_of_its_turns() -> None:
    room, ada = opened()
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(ada, script(say="heard"))
    ending = room.world.loop.create_task(room.runtime.terminate(ada))
    room.settle()
    assert not ending.done()

    gate.set()
    room.run(ending)

    assert room.named("Ada").turns == 1
    assert not room.named("Ada").alive


def test_an_agent_that_completes_first_cannot_be_ended_again() -> None:
    room, ada = opened()
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(ada, script(("complete", {"result": 1})))
    ending = room.world.loop.create_task(room.runtime.terminate(ada))
    room.settle()

    gate.set()
    with pytest.raises(UnknownAgent, match="it has ended"):
        room.run(ending)

    assert room.events(room.session(ada)).count("agent.terminated") == 1


@pytest.mark.parametrize("call", ["terminate", "suspend"])
def test_nobody_cannot_be_ended_nor_suspended(room: Room, call: str) -> None:
    room.open()

    with pytest.raises(UnknownAgent):
        room.run(getattr(room.runtime, call)("nobody"))


# -- the operator's messages -------------------------------------------------------------


def reported(room: Room, ada: str) -> str:
    room.say(ada, script(("send_message", {"to": "USER", "payload": "hello"})))
    return room.runtime.view().user[-1].message_id


@BOTH
def test_a_message_that_the_operator_has_acknowledged_is_shown_no_more(framing: Framing) -> None:
    # R10: messages to the operator were volatile.
    room, ada = opened(Options(framing=framing))
    message_id = reported(room, ada)
    room.reopen()
    assert room.to_user() == [("text", "hello")]

    room.run(room.runtime.acknowledge(message_id))

    assert room.to_user() == []
    room.reopen()
    assert room.to_user() == []


def test_an_acknowledgement_again_changes_nothing() -> None:
    room, ada = opened()
    message_id = reported(room, ada)
    room.run(room.runtime.acknowledge(message_id))
    before = room.read("user/events.jsonl")

    room.run(room.runtime.acknowledge(message_id))

    assert room.read("user/events.jsonl") == before


def test_an_acknowledgement_of_nothing_is_refused(room: Room) -> None:
    room.open()

    with pytest.raises(UnknownMessage, match="USER has no such message"):
        room.run(room.runtime.acknowledge("m"))
