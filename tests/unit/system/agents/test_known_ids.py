"""Ids that a log has forgotten: the operator may name them again, and nothing happens twice."""

from __future__ import annotations

import errno
import json

import pytest

from system.durable.errors import StateOutdated
from system.durable.known_ids import KNOWN_IDS
from system.errors import UnknownMessage
from system.runtime import Options
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import Room, opened

SHORT = Options(snapshot_lines=3, recording=None)
DAY = 86_400
FIRST = "1" * 32


def known(room: Room, session_id: str, message_id: str) -> bool:
    state = room.runtime._orchestrator.state
    assert state is not None
    return state.transact(lambda each: KNOWN_IDS.read(each, session_id, message_id)) is not None


def snapshot_of(room: Room, path: str) -> dict[str, object]:
    """The data of the first line of a segment."""
    data = json.loads(room.read(path).partition(b"\n")[0])["data"]
    assert isinstance(data, dict)
    return data


def send(room: Room, ada: str) -> None:
    room.run(room.runtime.send(ada, "hello", FIRST))
    room.settle()


def user_gets(room: Room, ada: str, count: int) -> list[str]:
    """Messages to the operator, one in a turn; returns the ids of those that were there before."""
    before = [message.message_id for message in room.runtime.view().user]
    for number in range(count):
        room.say(ada, script(("send_message", {"to": "USER", "payload": number})))
    return before


def test_a_message_that_the_log_has_forgotten_is_not_enqueued_again() -> None:
    room, ada = opened(SHORT)
    send(room, ada)
    room.say(ada, "more")
    session_id = room.session(ada)
    assert snapshot_of(room, f"agents/{session_id}/events.1.jsonl")["from_user"] == []
    assert known(room, session_id, FIRST)

    send(room, ada)
    room.reopen()
    send(room, ada)

    assert room.named("Ada").turns == 2
    assert FIRST not in room.agent(ada).history.enqueued


def test_a_message_that_waits_during_the_snapshot_is_known_behind_it() -> None:
    room, ada = opened(SHORT)
    room.say(ada, script(("spawn_agent", {"name": "Bob"}), ("gate", {"name": "Bob"})))
    bob = room.named("Bob").agent_id
    room.run(room.runtime.send(bob, "hello", FIRST))
    room.say(ada, script(("ungate", {"name": "Bob"})))
    for number in range(4):
        room.say(bob, number)
    turns = room.named("Bob").turns

    room.reopen()
    room.run(room.runtime.send(bob, "hello", FIRST))
    room.settle()

    assert room.named("Bob").turns == turns


def test_the_ids_stay_in_the_snapshot_if_the_database_refuses_them() -> None:
    room, ada = opened(SHORT)
    room.files.fail("replace", "root.json", errno.EIO)
    send(room, ada)
    data = snapshot_of(room, f"agents/{room.session(ada)}/events.1.jsonl")
    assert (data["from_user"], data["known_ids"]) == ([FIRST], False)
    send(room, ada)
    room.reopen()
    send(room, ada)
    assert room.named("Ada").turns == 1


def test_a_database_without_the_ids_of_a_snapshot_is_older_than_the_log() -> None:
    room, ada = opened(Options(snapshot_lines=8, recording=None))
    send(room, ada)
    room.run(room.runtime._orchestrator.durable.opened())
    room.run(room.runtime.close())
    older = {name: room.read(name) for name in room.host.files.listdir("") if "state" in name}
    room.reopen()
    for number in range(3):
        room.say(ada, number)
    assert known(room, room.session(ada), FIRST)
    room.run(room.runtime.close())
    room.kill()
    for name in [name for name in room.host.files.listdir("") if "state" in name]:
        room.host.files.unlink(name)
    for name, content in older.items():
        room.write(name, content)

    with pytest.raises(StateOutdated, match="restore a copy that is not older than the logs"):
        room.open()


def test_an_acknowledged_message_is_known_for_thirty_days() -> None:
    room, ada = opened(SHORT)
    user_gets(room, ada, 2)
    first, second = (message.message_id for message in room.runtime.view().user)
    room.run(room.runtime.acknowledge(first))
    user_gets(room, ada, 4)
    assert first not in room.agent("USER").history.enqueued

    for days in (0, 29):
        room.settle(days * DAY)
        room.run(room.runtime.acknowledge(first))
    room.settle(1 * DAY)
    with pytest.raises(UnknownMessage):
        room.run(room.runtime.acknowledge(first))
    room.reopen()
    with pytest.raises(UnknownMessage):
        room.run(room.runtime.acknowledge(first))

    room.settle(1000 * DAY)
    room.run(room.runtime.acknowledge(second))
    assert second not in [message.message_id for message in room.runtime.view().user]


def test_the_row_of_an_acknowledged_message_is_removed() -> None:
    room, ada = opened(SHORT)
    user_gets(room, ada, 1)
    (first,) = (message.message_id for message in room.runtime.view().user)
    room.run(room.runtime.acknowledge(first))
    user_gets(room, ada, 4)
    user = room.agent("USER").session_id
    assert known(room, user, first)

    room.settle(30 * DAY)
    room.reopen()

    assert not known(room, user, first)


def test_a_message_to_user_that_may_be_dispatched_again_stays_in_the_snapshot() -> None:
    room, ada = opened(SHORT)
    user_gets(room, ada, 6)
    messages = [message.message_id for message in room.runtime.view().user]
    for message_id in messages:
        room.run(room.runtime.acknowledge(message_id))

    room.reopen()

    assert room.runtime.view().user == ()
    assert room.runtime.report.redone == 0


def old_segments(room: Room) -> list[str]:
    return [name for name in room.host.files.listdir("user") if name.startswith("events")]


def segment_of_user(room: Room, ada: str) -> None:
    """Let the log of USER begin a segment."""
    before = old_segments(room)
    while old_segments(room) == before:
        room.say(ada, script(("send_message", {"to": "USER", "payload": "x"})))
        for message in room.runtime.view().user:
            room.run(room.runtime.acknowledge(message.message_id))


def test_segments_of_user_are_removed_after_thirty_days_but_for_the_last_two() -> None:
    room, ada = opened(SHORT)
    for _ in range(4):
        segment_of_user(room, ada)
    before = old_segments(room)
    room.settle(29 * DAY)
    segment_of_user(room, ada)
    assert set(before) < set(old_segments(room))

    room.settle(2 * DAY)
    segment_of_user(room, ada)

    after = old_segments(room)
    # The last segment of before was written to 29 days later.
    assert after == ["events.4.jsonl", "events.5.jsonl", "events.6.jsonl"]
    pending = [message.message_id for message in room.runtime.view().user]
    runtime = room.reopen()
    assert [message.message_id for message in runtime.view().user] == pending
    assert (runtime.report.problems, runtime.report.missing) == ([], {})


def test_segments_of_an_agent_are_kept() -> None:
    room, ada = opened(SHORT)
    for number in range(10):
        room.say(ada, number)
        room.settle(31 * DAY)

    names = room.host.files.listdir(f"agents/{room.session(ada)}")
    assert "events.jsonl" in names
    assert len(names) > 5
