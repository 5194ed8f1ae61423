"""An agent is created, or nothing is left of it."""

from __future__ import annotations

import asyncio
import errno
import json

import pytest

from system.agents.view import AgentView
from system.errors import (
    BadName,
    LogStopped,
    NameTaken,
    NotPlainJson,
    PayloadTooLarge,
    StorageFull,
    UnknownProvider,
)
from system.ports import ProviderError
from system.runtime import Options
from system.storage.framing import Framing
from tests.unit.system.agents.room import Room, opened, record_of

BOTH = pytest.mark.parametrize("framing", list(Framing))


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
            ada, room.session(ada), "Ada", None, alive=True, turns=0, last_turns=(), pending=(),
            gated=False, permits=0, metadata={}, stopped="", trouble="", running=False,
        ),
    )  # fmt: skip


def test_the_same_request_gives_the_same_agent_also_after_a_crash(room: Room) -> None:
    # The agent is there; the crash came before the answer to the caller.
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

    async def both() -> list[str | BaseException]:
        calls = [room.runtime.create_agent("Ada") for _ in range(2)]
        return await asyncio.gather(*calls, return_exceptions=True)

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
    with pytest.raises(NotPlainJson, match="name: lone surrogate"):
        room.create("\ud800")
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
    room.check_no_failures()


def test_a_failed_creation_that_cannot_be_removed_is_an_orphan_at_the_next_boot(
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
    room.check_no_failures()


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


def test_a_creation_whose_barrier_failed_frees_its_slot() -> None:
    room = Room(Options(slots=1))
    room.open()
    room.files.fail("fdatasync", "events.jsonl", errno.EIO)
    with pytest.raises(LogStopped):
        room.create("Ada")

    bob = room.create("Bob")
    room.say(bob, "hello")

    assert room.named("Bob").turns == 1
    assert "stop c1" in room.provider.asked
