"""The ids that a snapshot keeps: those of entries that the next boot may dispatch again."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable

import pytest

from system.agents import event
from system.ports import Json
from system.runtime import Options
from tests.unit.system.agents.damage import remove
from tests.unit.system.agents.emitting import fail_when_asked
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import SECOND_NS, Room, opened

SHORT = Options(snapshot_lines=3, recording=None)


def enqueued(room: Room, session_id: str, kind: str) -> list[Json]:
    """The payloads of all messages of a kind that a log has ever got."""
    log = room.runtime._orchestrator.sessions[session_id].log.log
    assert log is not None
    return [
        line.data["payload"]
        for line in [*log.earlier_lines(), *log.lines()]
        if line.event == event.MESSAGE_ENQUEUED and line.data["kind"] == kind
    ]


def take_turns(room: Room, agent_id: str) -> None:
    """Let an agent take so many turns that its log begins segments."""
    before = room.agent(agent_id).log.log
    assert before is not None
    number = before.number
    for payload in range(12):
        room.say(agent_id, payload)
    assert before.number > number


def files_of(room: Room, session_id: str) -> dict[str, bytes]:
    """The files of a session by their paths."""
    path = f"agents/{session_id}"
    return {f"{path}/{name}": room.read(f"{path}/{name}") for name in room.files.listdir(path)}


def test_the_error_about_a_returned_message_is_not_enqueued_again() -> None:
    room, ada, bob = parent_and_child(SHORT)
    room.say(ada, script(("gate", {"name": "Bob"})))
    room.say(ada, script(("send_message", {"to": "Bob", "payload": "hello"})))
    room.run(room.runtime.terminate(bob))
    room.settle()
    take_turns(room, ada)

    room.reopen()
    room.settle()

    assert len(enqueued(room, room.session(ada), "error")) == 1


def test_the_error_of_a_line_above_the_watermark_is_not_enqueued_again() -> None:
    room, ada, bob = parent_and_child(SHORT)
    room.say(ada, script(("spawn_agent", {"name": "Eve"})))
    # Ada's watermark stays below a message that the disk refuses.
    eve = room.named("Eve").session_id
    for name in files_of(room, eve):
        room.files.fail("append", name, errno.ENOSPC, sticky=True)
    room.say(ada, script(("send_message", {"to": "Eve", "payload": "hello"})))
    assert enqueued(room, eve, "text") == []
    gate = asyncio.Event()
    room.provider.hooks["sent"] = gate.wait
    room.say(ada, script(("send_message", {"to": "Bob", "payload": "hello"})))
    room.run(room.runtime.terminate(bob))
    gate.set()
    take_turns(room, ada)

    room.reopen()
    room.settle()

    assert enqueued(room, eve, "text") == ["hello"]
    assert len(enqueued(room, room.session(ada), "error")) == 1


@pytest.mark.parametrize("how", ["unserved", "lost"])
def test_a_message_of_a_session_that_was_not_read_is_not_enqueued_again(
    how: str,
) -> None:
    room, ada, bob = parent_and_child(SHORT)
    room.say(ada, script(("spawn_agent", {"name": "Eve"})))
    eve = room.named("Eve")
    room.say(eve.agent_id, script(("send_message", {"to": "Bob", "payload": "hello"})))
    bob_session = room.session(bob)
    assert enqueued(room, bob_session, "text") == ["hello"]
    room.kill()
    put_back = _make_unreadable(room, eve.session_id, how)
    report = room.open().report
    assert [each.session_id for each in report.problems] == [eve.session_id]
    take_turns(room, bob)

    room.kill()
    put_back()
    assert room.open().report.problems == []
    room.settle()

    assert enqueued(room, bob_session, "text").count("hello") == 1


def _make_unreadable(room: Room, session_id: str, how: str) -> Callable[[], None]:
    """Let the next boot not read a session; the result lets the boot after it do so."""
    files = files_of(room, session_id)
    if how == "unserved":
        for name in files:
            room.files.fail("pread", name, errno.EIO)
        return lambda: None
    remove(room, session_id)

    def put_back() -> None:
        for name, content in files.items():
            room.write(name, content)

    return put_back


def test_ids_are_not_moved_before_the_outboxes_of_earlier_lines_are_applied() -> None:
    room, ada = opened(SHORT)
    room.run(room.runtime._orchestrator.durable.opened())
    # The transaction of the line is refused, the one of the snapshot after it is not.
    injector = fail_when_asked(room, "write *state.db-wal #1 ENOSPC")
    room.say(ada, script(("remind_me", {"delay_ns": 5 * SECOND_NS, "payload": "tea"})))
    injector.remove()

    report = room.reopen().report
    room.settle(5)

    assert report.applied == 1
    assert room.shown() == [("reminder", "tea")]
