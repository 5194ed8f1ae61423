"""Children: created with their first messages, whatever the state of the disk."""

from __future__ import annotations

import errno

import pytest

from system.runtime import Options
from system.storage.framing import Framing
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child


@pytest.mark.parametrize("framing", list(Framing))
def test_a_spawned_child_is_created_with_its_bootstrap_and_runs(framing: Framing) -> None:
    room, ada, bob = parent_and_child(Options(framing=framing))

    lines = room.lines(room.session(bob))

    assert [line.event for line in lines[:3]] == [
        "session.created", "agent.created", "message.enqueued",
    ]  # fmt: skip
    assert lines[1].data == {
        "agent_id": bob, "name": "Bob", "parent_session_id": room.session(ada),
        "instructions": "work", "request_id": None,
    }  # fmt: skip
    assert room.shown() == [("bootstrap", "work")]
    assert room.named("Bob").turns == 1
    room.check_no_failures()


def test_a_message_to_a_child_of_the_same_turn_comes_after_its_bootstrap() -> None:
    # Planted bug R5: it was lost, because the child's log did not exist yet.
    room, ada, _ = parent_and_child()

    room.say(ada, script(
        ("spawn_agent", {"name": "Kim", "instructions": "sing"}),
        ("send_message", {"to": "Kim", "payload": "hello"}),
    ))  # fmt: skip

    assert room.shown() == [("bootstrap", "sing"), ("text", "hello")]


def test_a_child_whose_creation_the_disk_refuses_is_created_later() -> None:
    room, ada, _ = parent_and_child()
    room.files.fail("mkdir", "", errno.ENOSPC)

    room.say(ada, script(("spawn_agent", {"name": "Kim", "instructions": "sing"})))
    assert [agent.name for agent in room.runtime.view().agents] == ["Ada", "Bob"]
    room.settle(1)

    assert room.named("Kim").turns == 1
    room.check_no_failures()


def test_an_unfinished_creation_is_finished() -> None:
    room, ada, _ = parent_and_child()
    # The record stands, the log does not.
    room.files.fail("fsync", "events.jsonl", errno.EIO)

    room.say(ada, script(("spawn_agent", {"name": "Kim", "instructions": "sing"})))
    room.settle(1)

    assert room.events(room.named("Kim").session_id)[:3] == [
        "session.created", "agent.created", "message.enqueued",
    ]  # fmt: skip
    assert room.named("Kim").turns == 1
    room.check_no_failures()
