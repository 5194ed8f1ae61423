"""Messages and controls: to whom they come, and what comes back."""

from __future__ import annotations

import asyncio
import errno

from system.ports import Json
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import SECOND_NS, Room, log_of


def error(message_id: str, reason: str = "the recipient has ended") -> tuple[str, Json]:
    return "error", {"reason": reason, "message_id": message_id}


def sent(room: Room) -> str:
    """The id of the message that the last tool has sent."""
    return str(room.provider.results[-1]["message_id"])


def test_messages_of_several_turns_arrive_in_the_order_in_which_they_were_sent() -> None:
    room, ada, _ = parent_and_child()
    room.files.fail("append", log_of(room.named("Bob").session_id), errno.ENOSPC, nth=1)
    for text in ["one", "two", "three"]:
        room.say(ada, script(("send_message", {"to": "Bob", "payload": text})))

    room.settle(2)

    texts = [
        line.data["payload"]
        for line in room.lines(room.named("Bob").session_id)
        if line.event == "message.enqueued"
    ]
    assert texts == ["work", "one", "two", "three"]
    room.check_no_failures()


def test_a_message_to_an_agent_that_ended_meanwhile_comes_back_as_an_error() -> None:
    room, ada, bob = parent_and_child()
    gate = asyncio.Event()
    room.provider.hooks["sent"] = gate.wait
    room.say(ada, script(("send_message", {"to": "Bob", "payload": "hello"})))
    room.run(room.runtime.terminate(bob))

    gate.set()
    room.settle()

    assert room.shown() == [error(sent(room))]
    room.check_no_failures()


def test_an_error_that_the_disk_has_refused_comes_after_a_crash() -> None:
    room, ada, bob = parent_and_child()
    gate = asyncio.Event()
    room.provider.hooks["sent"] = gate.wait
    room.say(ada, script(("send_message", {"to": "Bob", "payload": "hello"})))
    message_id = sent(room)
    room.run(room.runtime.terminate(bob))
    # The line of the turn, those of its messages, then that of the error.
    room.files.fail("append", log_of(room.session(ada)), errno.ENOSPC, nth=3)
    gate.set()
    room.settle()
    room.say(ada, "a turn before the error is tried again")
    assert room.shown() == [("text", "a turn before the error is tried again")]

    room.say(ada, "another one, whose line has the watermark")
    room.reopen()
    room.settle()

    assert room.shown() == [error(message_id)]


def test_a_message_that_was_read_before_its_reader_ended_causes_no_error_after_a_crash() -> None:
    room, ada, bob = parent_and_child()
    room.say(ada, script(("send_message", {"to": "Bob", "payload": "hello"})))
    room.run(room.runtime.terminate(bob))
    room.settle()
    before = room.events(room.session(ada))

    room.reopen()
    room.settle()

    assert room.events(room.session(ada)) == before
    room.check_no_failures()


def test_unpresented_messages_of_an_ended_agent_return_to_their_senders() -> None:
    room, ada, bob = parent_and_child()
    room.say(ada, script(("gate", {"name": "Bob"})))
    room.say(ada, script(("send_message", {"to": "Bob", "payload": "hello"})))
    by_user = room.say(bob, "hi")
    by_ada = sent(room)

    room.run(room.runtime.terminate(bob))
    room.settle()

    assert room.to_user() == [error(by_user)]
    assert room.shown() == [error(by_ada)]
    room.check_no_failures()


def test_unpresented_errors_notices_and_reminders_cause_no_error_message() -> None:
    room, ada, bob = parent_and_child()
    room.say(ada, script(("gate", {"name": "Bob"}), ("spawn_agent", {"name": "Eve"})))
    eve = room.named("Eve").agent_id
    room.say(ada, script(("ungate", {"name": "Bob"})))
    room.say(bob, script(
        ("subscribe", {"name": "Eve"}), ("remind_me", {"delay_ns": 1, "payload": "tea"}),
    ))  # fmt: skip
    room.say(ada, script(("gate", {"name": "Bob"})))
    room.run(room.runtime.terminate(eve))
    room.settle(1)
    prompts = len(room.provider.prompts)

    room.run(room.runtime.terminate(bob))
    room.settle()

    assert len(room.provider.prompts) == prompts
    assert room.to_user() == []
    room.check_no_failures()


def test_a_reminder_over_which_every_turn_failed_is_reported_to_the_operator() -> None:
    room, ada, _ = parent_and_child()
    room.say(ada, script(("remind_me", {"delay_ns": SECOND_NS, "payload": "tea"})))
    reminder_id = room.provider.results[-1]["reminder_id"]
    room.provider.fail("sent", 5)

    room.settle(3600)

    assert room.named("Ada").pending == ()
    [report] = room.runtime.view().user
    assert (report.message_id, report.kind) == (f"{reminder_id}.dead", "system")
    room.check_no_failures()


def test_an_unpresented_bootstrap_of_an_ended_child_causes_no_error_message() -> None:
    room, ada, _ = parent_and_child()
    room.say(ada, script(("spawn_agent", {"name": "Kim"}), ("gate", {"name": "Kim"})))
    prompts = len(room.provider.prompts)
    kim = room.named("Kim")

    room.run(room.runtime.terminate(kim.agent_id))
    room.settle()

    assert len(room.provider.prompts) == prompts
    assert room.to_user() == []
    room.check_no_failures()


def test_a_bootstrap_that_ends_its_agent_is_reported_to_the_parent() -> None:
    room, ada, _ = parent_and_child()
    count = 0

    async def fail_kim() -> None:
        nonlocal count
        if '"payload":"work hard"' in room.provider.prompts[-1]:
            count += 1
            room.provider.fail("sent")

    room.provider.hooks["sent"] = fail_kim
    room.say(ada, script(("spawn_agent", {"name": "Kim", "instructions": "work hard"})))

    room.settle(60)

    assert count == 5
    kind, payload = room.shown()[0]
    assert kind == "error"
    assert isinstance(payload, dict)
    assert payload["reason"] == "it was presented 5 times, and no turn came to its end"
    assert room.named("Kim").alive
    room.check_no_failures()


def test_a_message_in_the_outbox_bounces_when_its_recipient_ends_first() -> None:
    room, ada, bob = parent_and_child()
    log = log_of(room.named("Bob").session_id)
    room.files.fail("append", log, errno.ENOSPC)
    room.say(ada, script(("send_message", {"to": "Bob", "payload": "hello"})))
    message_id = sent(room)

    room.run(room.runtime.terminate(bob))
    room.settle(2)

    assert room.shown() == [error(message_id)]
    room.check_no_failures()


def test_a_control_that_waits_for_an_agent_that_ends_is_dropped() -> None:
    room, ada, bob = parent_and_child()
    room.files.fail("append", log_of(room.named("Bob").session_id), errno.ENOSPC)
    room.say(ada, script(("gate", {"name": "Bob"})))
    prompts = len(room.provider.prompts)

    room.run(room.runtime.terminate(bob))
    room.settle(2)

    assert len(room.provider.prompts) == prompts
    room.check_no_failures()


def test_a_control_of_a_child_that_has_ended_meanwhile_is_dropped() -> None:
    room, ada, bob = parent_and_child()
    gate = asyncio.Event()
    room.provider.hooks["sent"] = gate.wait
    room.say(ada, script(("gate", {"name": "Bob"})))
    room.run(room.runtime.terminate(bob))

    gate.set()
    room.settle()

    assert room.events(room.session(bob))[-1] == "agent.terminated"
    room.check_no_failures()


def test_an_agent_that_receives_a_message_while_its_end_is_written_answers_it() -> None:
    room, ada, bob = parent_and_child()
    agent = room.agent(bob)
    gate = asyncio.Event()

    async def hold() -> None:
        async with agent.log.lock:
            await gate.wait()

    holding = room.world.loop.create_task(hold())
    room.settle()
    ending = room.world.loop.create_task(room.runtime.terminate(bob))
    room.settle()
    room.say(ada, script(("send_message", {"to": "Bob", "payload": "hello"})))
    message_id = sent(room)

    gate.set()
    room.run(holding)
    room.run(ending)
    room.settle()

    assert room.shown() == [error(message_id)]
    room.check_no_failures()


def test_a_queue_that_has_been_written_is_not_tried_again() -> None:
    room, ada, bob = parent_and_child()
    room.files.fail("append", log_of(room.named("Bob").session_id), errno.ENOSPC)
    room.say(ada, script(("send_message", {"to": "Bob", "payload": "hello"})))
    assert len(room.agent(bob).work.tasks()) == 1

    room.settle(2)

    assert room.shown() == [("text", "hello")]
    assert room.agent(bob).work.tasks() == []
