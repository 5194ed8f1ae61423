"""Dispatch to other logs that cannot succeed at once: repeated, or left to the next boot."""

from __future__ import annotations

import errno

from system.agents.agent import Agent
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child

USER_LOG = "user/events.jsonl"


def test_a_dispatch_that_a_full_disk_refuses_is_repeated_until_it_succeeds() -> None:
    room, ada, _ = parent_and_child()
    room.files.fail("append", USER_LOG, errno.ENOSPC)
    room.files.fail("append", USER_LOG, errno.ENOSPC, nth=1)
    room.say(ada, script(("send_message", {"to": "USER", "payload": "hello"})))
    assert room.to_user() == []
    room.settle(1)
    assert room.to_user() == []

    room.settle(2)

    assert room.to_user() == [("text", "hello")]
    room.check_no_failures()


def test_several_logs_are_written_concurrently_and_one_refusal_affects_no_other() -> None:
    room, ada, _ = parent_and_child()
    room.files.fail("append", USER_LOG, errno.ENOSPC)

    room.say(ada, script(
        ("send_message", {"to": "USER", "payload": "up"}),
        ("send_message", {"to": "Bob", "payload": "down"}),
    ))  # fmt: skip

    assert room.shown() == [("text", "down")]
    room.settle(1)
    assert room.to_user() == [("text", "up")]


def test_a_stopped_agent_receives_its_lines_at_the_next_boot() -> None:
    room, ada, _ = parent_and_child()
    room.files.fail("fdatasync", USER_LOG, errno.EIO)
    room.say(ada, script(("send_message", {"to": "USER", "payload": "one"})))
    room.say(ada, script(("send_message", {"to": "USER", "payload": "two"})))
    room.settle(60)
    assert room.to_user() == []
    assert "its barrier failed" in room.runtime.view().user_stopped
    room.check_no_failures()

    room.reopen()

    assert room.to_user() == [("text", "one"), ("text", "two")]


def test_an_agent_that_stops_during_a_repeated_dispatch_is_left_to_the_next_boot() -> None:
    room, ada, _ = parent_and_child()
    room.files.fail("append", USER_LOG, errno.ENOSPC)
    room.say(ada, script(("send_message", {"to": "USER", "payload": "one"})))
    room.files.fail("fdatasync", USER_LOG, errno.EIO)

    room.settle(60)
    room.check_no_failures()
    room.reopen()

    assert room.to_user() == [("text", "one")]


def test_a_closing_runtime_repeats_no_dispatch() -> None:
    room, ada, _ = parent_and_child()
    room.files.fail("append", USER_LOG, errno.ENOSPC)
    room.say(ada, script(("send_message", {"to": "USER", "payload": "one"})))

    room.run(room.runtime.close())
    room.settle(60)

    assert room.to_user() == []
    room.reopen()
    assert room.to_user() == [("text", "one")]


def test_an_end_whose_record_the_disk_refuses_is_finished_at_the_next_boot() -> None:
    room, _, bob = parent_and_child()
    session = room.named("Bob").session_id
    room.files.fail("replace", f"agents/{session}/session.json", errno.EIO)

    room.run(room.runtime.terminate(bob))

    assert b'"state":"ACTIVE"' in room.read(f"agents/{session}/session.json")
    room.reopen()
    assert b'"state":"TERMINATED"' in room.read(f"agents/{session}/session.json")


def test_a_failure_that_nobody_expected_is_kept_for_whoever_asks() -> None:
    room, ada, _ = parent_and_child()

    async def broken(_agent: Agent) -> None:
        raise KeyError("a bug of ours")

    room.runtime._orchestrator.take_turns = broken

    room.say(ada, "hello")

    assert [repr(failure) for failure in room.runtime.failures] == ["KeyError('a bug of ours')"]
    assert not room.named("Ada").running
