"""The operator's calls: what each does, and what each refuses."""

from __future__ import annotations

import asyncio
import errno
import json

import pytest

from system.agents import event
from system.agents.view import AgentView
from system.errors import (
    AgentStopped,
    BadName,
    Closed,
    HasChildren,
    LogStopped,
    NameTaken,
    NotPlainJson,
    PayloadTooLarge,
    RootInUse,
    StorageFull,
    UnknownAgent,
    UnknownMessage,
    UnknownProvider,
)
from system.ports import JsonObject, ProviderError
from system.runtime import Options, Runtime
from system.storage.framing import Framing
from tests.unit.system.agents.fake_provider import play
from tests.unit.system.agents.room import Room, log_of, record_of

BOTH = pytest.mark.parametrize("framing", list(Framing))


def opened(options: Options | None = None) -> tuple[Room, str]:
    room = Room(options)
    room.open()
    return room, room.create("Ada")


# -- create ------------------------------------------------------------------------------


@BOTH
def test_a_created_agent_has_a_record_a_log_and_a_conversation(framing: Framing) -> None:
    room = Room(Options(framing=framing))
    room.open()

    ada = room.create("Ada", instructions="be kind", model="small", request_id="r")

    session = room.named("Ada").session_id
    lines = room.lines(session)
    assert [(line.event, line.data) for line in lines] == [
        ("session.created", {
            "provider": "scripted", "model": "small", "system_prompt": "be kind", "identity": "c1",
        }),
        ("agent.created", {
            "agent_id": ada, "name": "Ada", "parent_session_id": None,
            "instructions": "be kind", "request_id": "r",
        }),
    ]  # fmt: skip
    record = json.loads(room.read(record_of(session)))
    assert (record["state"], record["provider_name"], record["model"]) == (
        "ACTIVE", "scripted", "small",
    )  # fmt: skip


def test_a_created_agent_is_shown_with_everything_it_has() -> None:
    room, ada = opened()

    assert room.runtime.view().agents == (
        AgentView(
            ada, room.agent(ada).session_id, "Ada", None, alive=True, turns=(), pending=(),
            gated=False, permits=0, metadata={}, stopped="", running=False,
        ),
    )  # fmt: skip


def test_the_same_request_gives_the_same_agent_also_after_a_crash(room: Room) -> None:
    # F-3: the agent is there, the caller was never told.
    room.open()
    ada = room.create("Ada", request_id="r")

    assert room.create("Ada", request_id="r") == ada
    room.reopen()
    assert room.create("Ada", request_id="r") == ada
    assert len(room.runtime.view().agents) == 1


def test_a_name_is_taken_as_long_as_its_agent_lives() -> None:
    room, ada = opened()
    with pytest.raises(NameTaken, match="'Ada'"):
        room.create("Ada")
    room.run(room.runtime.terminate(ada))

    assert room.create("Ada") != ada


def test_two_creations_of_one_name_at_once_give_one_agent(room: Room) -> None:
    room.open()

    async def both() -> tuple[str | BaseException, str | BaseException]:
        create = room.runtime.create_agent
        return await asyncio.gather(create("Ada"), create("Ada"), return_exceptions=True)

    first, second = room.run(both())

    assert isinstance(first, str)
    assert isinstance(second, NameTaken)


@pytest.mark.parametrize("name", ["", "USER", "x" * 201])
def test_a_name_that_no_agent_can_have_is_refused(room: Room, name: str) -> None:
    room.open()

    with pytest.raises(BadName):
        room.create(name)
    assert room.provider.asked == ["identities "]


def test_a_provider_that_is_not_there_is_refused(room: Room) -> None:
    room.open()

    with pytest.raises(UnknownProvider, match="known are scripted"):
        room.create("Ada", provider="other")
    room.create("Ada")


def test_instructions_that_cannot_be_kept_are_refused(room: Room) -> None:
    room.open()

    with pytest.raises(PayloadTooLarge):
        room.create("Ada", instructions="x" * (1 << 20))
    with pytest.raises(NotPlainJson):
        room.create("Ada", model="\ud800")
    assert room.provider.asked == ["identities "]


def test_a_creation_that_the_provider_refuses_leaves_nothing(room: Room) -> None:
    room.open()
    room.provider.fail("create")
    with pytest.raises(ProviderError):
        room.create("Ada")
    assert room.exists("agents") is False

    room.create("Ada")


@pytest.mark.parametrize(
    ("call", "ending"),
    [("mkdir", ""), ("replace", "session.json"), ("append", "events.jsonl")],
)
def test_a_creation_that_the_disk_has_no_room_for_leaves_nothing(
    room: Room, call: str, ending: str
) -> None:
    room.open()
    room.files.fail(call, ending, errno.ENOSPC)

    with pytest.raises(StorageFull):
        room.create("Ada")

    assert room.provider.asked[-2:] == ["create c1", "stop c1"]
    assert not room.exists("agents") or room.host.files.listdir("agents") == []
    assert room.runtime.view().agents == ()
    room.create("Ada")
    room.calm()


def test_a_creation_whose_remains_cannot_be_removed_is_an_orphan_at_the_next_boot(
    room: Room,
) -> None:
    room.open()
    room.files.fail("append", "events.jsonl", errno.ENOSPC)
    room.files.fail("unlink", "events.jsonl", errno.EIO)
    room.provider.fail("stop")
    with pytest.raises(StorageFull):
        room.create("Ada")

    room.reopen()

    assert len(room.runtime.report.orphans) == 1
    assert room.runtime.report.leaks == ["scripted: c1"]


def test_a_creation_whose_barrier_failed_is_known_at_the_next_boot(room: Room) -> None:
    room.open()
    room.files.fail("fdatasync", "events.jsonl", errno.EIO)
    with pytest.raises(LogStopped):
        room.create("Ada")
    assert room.runtime.view().agents == ()
    with pytest.raises(NameTaken):
        room.create("Ada")
    room.create("Bob")

    room.reopen()

    assert [agent.name for agent in room.runtime.view().agents if agent.alive] in (
        ["Ada", "Bob"], ["Bob", "Ada"],
    )  # fmt: skip
    room.calm()


def test_a_creation_that_is_given_up_frees_its_slot() -> None:
    room = Room(Options(slots=1))
    room.open()

    async def give_up() -> str:
        creating = asyncio.ensure_future(room.runtime.create_agent("Ada"))
        for _ in range(3):
            await asyncio.sleep(0)
        creating.cancel()
        return room.files.calls[-1]

    # The provider has answered, the disk is being written.
    assert room.run(give_up()).startswith("sync_dir agents/")
    room.settle()

    assert room.create("Bob")


# -- send --------------------------------------------------------------------------------


@BOTH
def test_a_sent_message_is_a_line_in_the_log_of_its_recipient(framing: Framing) -> None:
    room, ada = opened(Options(framing=framing))

    message_id = room.run(room.runtime.send(ada, {"a": 1}))

    line = room.lines(room.agent(ada).session_id)[2]
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

    assert room.events(room.agent(ada).session_id).count("message.enqueued") == 1
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

    async def both() -> tuple[BaseException | None, str | BaseException]:
        return await asyncio.gather(
            room.runtime.terminate(ada), room.runtime.send(ada, "hello"), return_exceptions=True
        )

    ended, refused = room.run(both())

    assert ended is None
    assert isinstance(refused, UnknownAgent)
    assert room.events(room.agent(ada).session_id)[-1] == "agent.terminated"


def test_a_message_that_the_disk_has_no_room_for_was_not_sent() -> None:
    room, ada = opened()
    room.files.fail("append", log_of(room.agent(ada).session_id), errno.ENOSPC)
    with pytest.raises(StorageFull):
        room.run(room.runtime.send(ada, "hello"))
    room.settle()
    assert room.provider.prompts == []

    room.say(ada, "again")

    assert room.shown() == [("text", "again")]


def test_a_message_to_a_stopped_agent_is_refused() -> None:
    room, ada = opened()
    room.files.fail("fdatasync", log_of(room.agent(ada).session_id), errno.EIO)
    with pytest.raises(LogStopped):
        room.run(room.runtime.send(ada, "hello"))

    with pytest.raises(AgentStopped, match="agent 'Ada' is stopped until the next boot"):
        room.run(room.runtime.send(ada, "again"))


# -- terminate and suspend ---------------------------------------------------------------


@BOTH
def test_an_agent_that_the_operator_ends_is_gone_for_good(framing: Framing) -> None:
    room, ada = opened(Options(framing=framing))

    room.run(room.runtime.terminate(ada))

    last = room.lines(room.agent(ada).session_id)[-1]
    assert (last.event, last.data) == (
        "agent.terminated", {"agent_id": ada, "reason": "operator", "returned": []},
    )  # fmt: skip
    assert not room.named("Ada").alive
    assert room.provider.asked[-1] == "stop c1"
    room.reopen()
    assert not room.named("Ada").alive


def test_an_agent_with_children_cannot_be_ended() -> None:
    room, ada = opened()
    room.say(ada, play(("spawn_agent", {"name": "Bob"}), ("spawn_agent", {"name": "Eve"})))

    with pytest.raises(HasChildren, match=r"'Ada' has living children \(Bob, Eve\)"):
        room.run(room.runtime.terminate(ada))

    assert room.named("Ada").alive


def test_an_agent_is_ended_between_two_of_its_turns() -> None:
    room, ada = opened()
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(ada, play(say="heard"))
    ending = room.world.loop.create_task(room.runtime.terminate(ada))
    room.settle()
    assert not ending.done()

    gate.set()
    room.run(ending)

    assert len(room.named("Ada").turns) == 1
    assert not room.named("Ada").alive


def test_an_agent_that_completes_first_cannot_be_ended_again() -> None:
    room, ada = opened()
    gate = asyncio.Event()
    room.provider.hooks["send"] = gate.wait
    room.say(ada, play(("complete", {"result": 1})))
    ending = room.world.loop.create_task(room.runtime.terminate(ada))
    room.settle()

    gate.set()
    with pytest.raises(UnknownAgent, match="it has ended"):
        room.run(ending)

    assert room.events(room.agent(ada).session_id).count("agent.terminated") == 1


@pytest.mark.parametrize("call", ["terminate", "suspend"])
def test_nobody_cannot_be_ended_nor_suspended(room: Room, call: str) -> None:
    room.open()

    with pytest.raises(UnknownAgent):
        room.run(getattr(room.runtime, call)("nobody"))


# -- the operator's messages -------------------------------------------------------------


def told(room: Room, ada: str) -> str:
    room.say(ada, play(("send_message", {"to": "USER", "payload": "hello"})))
    return room.runtime.view().user[-1].message_id


@BOTH
def test_a_message_that_the_operator_has_seen_is_shown_no_more(framing: Framing) -> None:
    # Hole R10: what was said to the operator was volatile.
    room, ada = opened(Options(framing=framing))
    message_id = told(room, ada)
    room.reopen()
    assert room.to_user() == [("text", "hello")]

    room.run(room.runtime.acknowledge(message_id))

    assert room.to_user() == []
    room.reopen()
    assert room.to_user() == []


def test_an_acknowledgement_again_changes_nothing() -> None:
    room, ada = opened()
    message_id = told(room, ada)
    room.run(room.runtime.acknowledge(message_id))
    before = room.read("user/events.jsonl")

    room.run(room.runtime.acknowledge(message_id))

    assert room.read("user/events.jsonl") == before


def test_an_acknowledgement_of_nothing_is_refused(room: Room) -> None:
    room.open()

    with pytest.raises(UnknownMessage, match="USER has no such message"):
        room.run(room.runtime.acknowledge("m"))


# -- open and close ----------------------------------------------------------------------


def test_open_recovers_and_starts(room: Room) -> None:
    room.runtime = room.run(Runtime.open(room.host, room.providers))
    ada = room.create("Ada")

    room.say(ada, "hello")

    assert len(room.named("Ada").turns) == 1


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
    room.run(room.runtime.send(ada, play(("spawn_agent", {"name": "Bob"}))))

    room.run(room.runtime.idle())

    assert (len(room.named("Ada").turns), room.named("Ada").running) == (1, False)
    assert len(room.named("Bob").turns) == 1


def test_a_closed_runtime_refuses_every_call() -> None:
    room, ada = opened()
    room.run(room.runtime.close())

    for call in (
        room.runtime.create_agent("Bob"),
        room.runtime.send(ada, 1),
        room.runtime.terminate(ada),
        room.runtime.suspend(ada),
        room.runtime.acknowledge("m"),
        room.runtime.close(),
    ):
        with pytest.raises(Closed, match="open it again"):
            room.run(call)


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
    session = room.agent(ada).session_id
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


def test_an_agent_that_is_still_being_born_is_not_shown(room: Room) -> None:
    room.open()
    ada = room.create("Ada")
    room.files.fail("mkdir", "", errno.ENOSPC)
    room.say(ada, play(("spawn_agent", {"name": "Bob"})))
    bob = str(room.provider.results[-1]["agent_id"])

    assert [agent.name for agent in room.runtime.view().agents] == ["Ada"]
    for call in (room.runtime.send(bob, "hello"), room.runtime.suspend(bob)):
        with pytest.raises(AgentStopped, match="it was never born"):
            room.run(call)


def test_an_agent_that_is_gated_by_the_log_of_a_life_before_stays_so(room: Room) -> None:
    # Hole R6: permits were logged and never restored.
    room.open()
    ada = room.create("Ada")
    control: JsonObject = {"control_id": "g", "by": "x"}
    permit: JsonObject = {"control_id": "p", "by": "x"}
    room.run(room.agent(ada).commit(
        lambda: [(event.GATE, control), (event.PERMIT_TURN, permit)]
    ))  # fmt: skip

    room.reopen()

    assert (room.named("Ada").gated, room.named("Ada").permits) == (True, 1)
