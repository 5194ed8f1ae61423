"""Promises and how they are kept: messages, children, errors, notices, reminders, retries."""

from __future__ import annotations

import asyncio
import errno

import pytest

from system.ports import Json
from system.runtime import Options
from system.storage.framing import Framing
from tests.unit.system.agents.fake_provider import play
from tests.unit.system.agents.room import SECOND_NS, Room, log_of

USER_LOG = "user/events.jsonl"


def opened(options: Options | None = None) -> tuple[Room, str, str]:
    """Ada and her child Bob, both at rest."""
    room = Room(options)
    room.open()
    ada = room.create("Ada")
    room.say(ada, play(("spawn_agent", {"name": "Bob", "instructions": "work"})))
    return room, ada, room.named("Bob").agent_id


def error(message_id: str, reason: str = "the recipient has ended") -> tuple[str, Json]:
    return "error", {"reason": reason, "message_id": message_id}


def sent(room: Room) -> str:
    """The id of the message that the last tool has sent."""
    return str(room.provider.results[-1]["message_id"])


# -- children ----------------------------------------------------------------------------


@pytest.mark.parametrize("framing", list(Framing))
def test_a_spawned_child_is_born_with_its_bootstrap_and_runs(framing: Framing) -> None:
    room, ada, bob = opened(Options(framing=framing))

    lines = room.lines(room.agent(bob).session_id)

    assert [line.event for line in lines[:3]] == [
        "session.created", "agent.created", "message.enqueued",
    ]  # fmt: skip
    assert lines[1].data == {
        "agent_id": bob, "name": "Bob", "parent_session_id": room.agent(ada).session_id,
        "instructions": "work", "request_id": None,
    }  # fmt: skip
    assert room.shown() == [("bootstrap", "work")]
    assert len(room.named("Bob").turns) == 1
    room.calm()


def test_a_message_to_a_child_of_the_same_turn_comes_after_its_bootstrap() -> None:
    # Hole R5: it was lost, because the child's log did not exist yet.
    room, ada, _ = opened()

    room.say(ada, play(
        ("spawn_agent", {"name": "Kim", "instructions": "sing"}),
        ("send_message", {"to": "Kim", "payload": "hello"}),
    ))  # fmt: skip

    assert room.shown() == [("bootstrap", "sing"), ("text", "hello")]


def test_a_child_whose_birth_the_disk_refuses_is_born_later() -> None:
    room, ada, _ = opened()
    room.files.fail("mkdir", "", errno.ENOSPC)

    room.say(ada, play(("spawn_agent", {"name": "Kim", "instructions": "sing"})))
    assert [agent.name for agent in room.runtime.view().agents] == ["Ada", "Bob"]
    room.settle(1)

    assert len(room.named("Kim").turns) == 1
    room.calm()


def test_a_birth_that_was_half_done_is_finished() -> None:
    room, ada, _ = opened()
    # The record stands, the log does not.
    room.files.fail("fsync", "events.jsonl", errno.EIO)

    room.say(ada, play(("spawn_agent", {"name": "Kim", "instructions": "sing"})))
    room.settle(1)

    assert room.events(room.named("Kim").session_id)[:3] == [
        "session.created", "agent.created", "message.enqueued",
    ]  # fmt: skip
    assert len(room.named("Kim").turns) == 1
    room.calm()


# -- messages ----------------------------------------------------------------------------


def test_messages_of_several_turns_arrive_in_the_order_in_which_they_were_sent() -> None:
    room, ada, _ = opened()
    room.files.fail("append", log_of(room.named("Bob").session_id), errno.ENOSPC, nth=1)
    for text in ["one", "two", "three"]:
        room.say(ada, play(("send_message", {"to": "Bob", "payload": text})))

    room.settle(2)

    texts = [
        line.data["payload"]
        for line in room.lines(room.named("Bob").session_id)
        if line.event == "message.enqueued"
    ]
    assert texts == ["work", "one", "two", "three"]
    room.calm()


def test_a_message_to_an_agent_that_ended_meanwhile_comes_back_as_an_error() -> None:
    room, ada, bob = opened()
    gate = asyncio.Event()
    room.provider.hooks["sent"] = gate.wait
    room.say(ada, play(("send_message", {"to": "Bob", "payload": "hello"})))
    room.run(room.runtime.terminate(bob))

    gate.set()
    room.settle()

    assert room.shown() == [error(sent(room))]
    room.calm()


def test_messages_that_an_ended_agent_never_saw_come_back_to_their_senders() -> None:
    room, ada, bob = opened()
    room.say(ada, play(("gate", {"name": "Bob"})))
    room.say(ada, play(("send_message", {"to": "Bob", "payload": "hello"})))
    by_user = room.say(bob, "hi")
    by_ada = sent(room)

    room.run(room.runtime.terminate(bob))
    room.settle()

    assert room.to_user() == [error(by_user)]
    assert room.shown() == [error(by_ada)]
    room.calm()


def test_nobody_is_told_about_errors_notices_and_reminders_that_nobody_saw() -> None:
    room, ada, bob = opened()
    room.say(ada, play(("gate", {"name": "Bob"}), ("spawn_agent", {"name": "Eve"})))
    eve = room.named("Eve").agent_id
    room.say(ada, play(("ungate", {"name": "Bob"})))
    room.say(bob, play(
        ("subscribe", {"name": "Eve"}), ("remind_me", {"delay_ns": 1, "payload": "tea"}),
    ))  # fmt: skip
    room.say(ada, play(("gate", {"name": "Bob"})))
    room.run(room.runtime.terminate(eve))
    room.settle(1)
    prompts = len(room.provider.prompts)

    room.run(room.runtime.terminate(bob))
    room.settle()

    assert len(room.provider.prompts) == prompts
    assert room.to_user() == []
    room.calm()


def test_nobody_is_told_about_a_reminder_that_every_turn_has_failed_over() -> None:
    room, ada, _ = opened()
    room.say(ada, play(("remind_me", {"delay_ns": SECOND_NS, "payload": "tea"})))
    room.provider.fail("sent", 5)

    room.settle(60)

    assert room.events(room.agent(ada).session_id)[-1] == "message.dead"
    assert room.named("Ada").pending == ()
    room.calm()


def test_a_bootstrap_that_an_ended_child_never_saw_is_nobodys_error() -> None:
    room, ada, _ = opened()
    room.say(ada, play(("spawn_agent", {"name": "Kim"}), ("gate", {"name": "Kim"})))
    prompts = len(room.provider.prompts)
    kim = room.named("Kim")

    room.run(room.runtime.terminate(kim.agent_id))
    room.settle()

    assert len(room.provider.prompts) == prompts
    assert room.to_user() == []
    room.calm()


def test_a_bootstrap_that_kills_its_agent_is_told_to_the_parent() -> None:
    room, ada, _ = opened()
    count = 0

    async def fail_kim() -> None:
        nonlocal count
        if '"payload":"work hard"' in room.provider.prompts[-1]:
            count += 1
            room.provider.fail("sent")

    room.provider.hooks["sent"] = fail_kim
    room.say(ada, play(("spawn_agent", {"name": "Kim", "instructions": "work hard"})))

    room.settle(60)

    assert count == 5
    kind, payload = room.shown()[0]
    assert kind == "error"
    assert isinstance(payload, dict)
    assert payload["reason"] == "it was presented 5 times, and no turn came to its end"
    assert room.named("Kim").alive
    room.calm()


def test_an_owed_message_bounces_when_its_recipient_ends_before_it_can_be_told() -> None:
    room, ada, bob = opened()
    log = log_of(room.named("Bob").session_id)
    room.files.fail("append", log, errno.ENOSPC)
    room.say(ada, play(("send_message", {"to": "Bob", "payload": "hello"})))
    message_id = sent(room)

    room.run(room.runtime.terminate(bob))
    room.settle(2)

    assert room.shown() == [error(message_id)]
    room.calm()


def test_an_owed_control_of_an_agent_that_has_ended_is_dropped() -> None:
    room, ada, bob = opened()
    room.files.fail("append", log_of(room.named("Bob").session_id), errno.ENOSPC)
    room.say(ada, play(("gate", {"name": "Bob"})))
    prompts = len(room.provider.prompts)

    room.run(room.runtime.terminate(bob))
    room.settle(2)

    assert len(room.provider.prompts) == prompts
    room.calm()


def test_a_control_of_a_child_that_has_ended_meanwhile_is_dropped() -> None:
    room, ada, bob = opened()
    gate = asyncio.Event()
    room.provider.hooks["sent"] = gate.wait
    room.say(ada, play(("gate", {"name": "Bob"})))
    room.run(room.runtime.terminate(bob))

    gate.set()
    room.settle()

    assert room.events(room.agent(bob).session_id)[-1] == "agent.terminated"
    room.calm()


def test_who_is_told_while_its_end_is_being_written_answers_all_the_same() -> None:
    room, ada, bob = opened()
    agent = room.agent(bob)
    gate = asyncio.Event()

    async def hold() -> None:
        async with agent.lock:
            await gate.wait()

    holding = room.world.loop.create_task(hold())
    room.settle()
    ending = room.world.loop.create_task(room.runtime.terminate(bob))
    room.settle()
    room.say(ada, play(("send_message", {"to": "Bob", "payload": "hello"})))
    message_id = sent(room)

    gate.set()
    room.run(holding)
    room.run(ending)
    room.settle()

    assert room.shown() == [error(message_id)]
    room.calm()


# -- the disk refuses --------------------------------------------------------------------


def test_what_the_disk_had_no_room_for_is_told_again_until_it_is_there() -> None:
    room, ada, _ = opened()
    room.files.fail("append", USER_LOG, errno.ENOSPC)
    room.files.fail("append", USER_LOG, errno.ENOSPC, nth=1)
    room.say(ada, play(("send_message", {"to": "USER", "payload": "hello"})))
    assert room.to_user() == []
    room.settle(1)
    assert room.to_user() == []

    room.settle(2)

    assert room.to_user() == [("text", "hello")]
    room.calm()


def test_several_logs_are_told_side_by_side_and_one_refusal_hinders_no_other() -> None:
    room, ada, _ = opened()
    room.files.fail("append", USER_LOG, errno.ENOSPC)

    room.say(ada, play(
        ("send_message", {"to": "USER", "payload": "up"}),
        ("send_message", {"to": "Bob", "payload": "down"}),
    ))  # fmt: skip

    assert room.shown() == [("text", "down")]
    room.settle(1)
    assert room.to_user() == [("text", "up")]


def test_whoever_is_stopped_is_told_at_the_next_boot() -> None:
    room, ada, _ = opened()
    room.files.fail("fdatasync", USER_LOG, errno.EIO)
    room.say(ada, play(("send_message", {"to": "USER", "payload": "one"})))
    room.say(ada, play(("send_message", {"to": "USER", "payload": "two"})))
    room.settle(60)
    assert room.to_user() == []
    assert "its barrier failed" in room.runtime.view().user_stopped
    room.calm()

    room.reopen()

    assert room.to_user() == [("text", "one"), ("text", "two")]


def test_an_agent_that_stops_while_it_is_told_again_is_left_to_the_next_boot() -> None:
    room, ada, _ = opened()
    room.files.fail("append", USER_LOG, errno.ENOSPC)
    room.say(ada, play(("send_message", {"to": "USER", "payload": "one"})))
    room.files.fail("fdatasync", USER_LOG, errno.EIO)

    room.settle(60)
    room.calm()
    room.reopen()

    assert room.to_user() == [("text", "one")]


def test_a_runtime_that_closes_tells_nobody_again() -> None:
    room, ada, _ = opened()
    room.files.fail("append", USER_LOG, errno.ENOSPC)
    room.say(ada, play(("send_message", {"to": "USER", "payload": "one"})))

    room.run(room.runtime.close())
    room.settle(60)

    assert room.to_user() == []
    room.reopen()
    assert room.to_user() == [("text", "one")]


def test_an_end_whose_record_the_disk_refuses_is_finished_at_the_next_boot() -> None:
    room, _, bob = opened()
    session = room.named("Bob").session_id
    room.files.fail("replace", f"agents/{session}/session.json", errno.EIO)

    room.run(room.runtime.terminate(bob))

    assert b'"state":"ACTIVE"' in room.read(f"agents/{session}/session.json")
    room.reopen()
    assert b'"state":"TERMINATED"' in room.read(f"agents/{session}/session.json")


# -- notices -----------------------------------------------------------------------------


def test_a_subscriber_is_told_once_when_the_agent_ends() -> None:
    room, ada, bob = opened()
    room.say(ada, play(("subscribe", {"name": "Bob"})))

    room.say(bob, play(("complete", {"result": 1})))

    shown = [item for turn in (-2, -1) for item in room.shown(turn)]
    notice = ("notice", {"event": "terminated", "agent_id": bob, "name": "Bob"})
    assert [item for item in shown if item[0] == "notice"] == [notice]
    room.reopen()
    assert room.named("Ada").pending == ()


def test_a_subscription_to_who_ends_in_the_meantime_is_answered_at_once() -> None:
    room, ada, bob = opened()
    gate = asyncio.Event()
    room.provider.hooks["sent"] = gate.wait
    room.say(ada, play(("subscribe", {"name": "Bob"})))
    room.run(room.runtime.terminate(bob))

    gate.set()
    room.settle()

    assert [kind for kind, _payload in room.shown()] == ["notice"]


def test_who_has_unsubscribed_is_not_told() -> None:
    room, ada, bob = opened()
    room.say(ada, play(("subscribe", {"name": "Bob"})))
    subscription = room.provider.results[-1]["subscription_id"]
    room.say(ada, play(("unsubscribe", {"subscription_id": subscription})))
    prompts = len(room.provider.prompts)

    room.run(room.runtime.terminate(bob))
    room.settle()

    assert len(room.provider.prompts) == prompts


# -- reminders ---------------------------------------------------------------------------


def remind(room: Room, agent_id: str, delay_ns: int) -> str:
    room.say(agent_id, play(("remind_me", {"delay_ns": delay_ns, "payload": "tea"})))
    return str(room.provider.results[-1]["reminder_id"])


def test_a_reminder_comes_when_its_time_has_come() -> None:
    room, ada, _ = opened()
    reminder_id = remind(room, ada, 5 * SECOND_NS)
    room.settle(4)
    assert room.shown() != [("reminder", "tea")]

    room.settle(1)

    assert room.shown() == [("reminder", "tea")]
    assert room.lines(room.agent(ada).session_id)[-4].data["message_id"] == reminder_id
    room.calm()


def test_a_reminder_of_the_life_before_comes_all_the_same_and_once() -> None:
    # Hole R21: reminders were volatile.
    room, ada, _ = opened()
    remind(room, ada, 5 * SECOND_NS)
    room.reopen()
    prompts = len(room.provider.prompts)

    room.settle(5)
    room.reopen()
    room.settle(10)

    assert len(room.provider.prompts) == prompts + 1


def test_a_reminder_that_is_overdue_at_a_boot_comes_at_once() -> None:
    room, ada, _ = opened()
    remind(room, ada, 5 * SECOND_NS)
    room.kill()
    room.world.clock.advance(60 * SECOND_NS)
    room.open()

    room.settle()

    assert room.shown() == [("reminder", "tea")]


def test_a_cancelled_reminder_never_comes() -> None:
    room, ada, _ = opened()
    reminder_id = remind(room, ada, 5 * SECOND_NS)
    room.say(ada, play(("cancel_reminder", {"reminder_id": reminder_id})))
    prompts = len(room.provider.prompts)

    room.settle(10)

    assert len(room.provider.prompts) == prompts
    room.calm()


def test_a_reminder_that_is_cancelled_in_its_own_turn_never_comes() -> None:
    room, ada, _ = opened()

    async def change_its_mind() -> None:
        tools = room.provider.tools
        assert tools is not None
        added = tools.call("1", "remind_me", {"delay_ns": 1, "payload": "tea"})
        tools.call("2", "cancel_reminder", added)

    room.provider.hooks["sent"] = change_its_mind
    room.say(ada, "hello")
    prompts = len(room.provider.prompts)

    room.settle(10)

    assert room.named("Ada").pending == ()
    assert len(room.provider.prompts) == prompts
    room.calm()


def test_a_runtime_that_closes_waits_for_no_reminder() -> None:
    room, ada, _ = opened()
    remind(room, ada, 5 * SECOND_NS)
    room.run(room.runtime.close())

    room.settle(10)

    assert room.named("Ada").pending == ()


def test_a_failure_that_nobody_expected_is_kept_for_whoever_asks() -> None:
    room, ada, _ = opened()
    room.provider.fail("send", error=KeyError("a bug of the provider"))

    room.say(ada, "hello")

    assert [repr(failure) for failure in room.runtime.failures] == [
        "KeyError('a bug of the provider')"
    ]
    assert not room.named("Ada").running
