"""Notices: each subscriber receives one when an agent ends."""

from __future__ import annotations

import asyncio
import errno

from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import log_of


def test_a_subscriber_receives_one_notice_when_the_agent_ends() -> None:
    room, ada, bob = parent_and_child()
    room.say(ada, script(("subscribe", {"name": "Bob"})))

    room.say(bob, script(("complete", {"result": 1})))

    shown = [item for turn in (-2, -1) for item in room.shown(turn)]
    notice = ("notice", {"event": "terminated", "agent_id": bob, "name": "Bob"})
    assert [item for item in shown if item[0] == "notice"] == [notice]
    room.reopen()
    assert room.named("Ada").pending == ()


def test_a_subscriber_receives_a_notice_when_the_operator_ends_the_agent() -> None:
    room, ada, bob = parent_and_child()
    room.say(ada, script(("subscribe", {"name": "Bob"})))

    room.run(room.runtime.terminate(bob))
    room.settle()

    assert [kind for kind, _payload in room.shown()] == ["notice"]


def test_a_subscription_to_who_ends_in_the_meantime_is_answered_at_once() -> None:
    room, ada, bob = parent_and_child()
    gate = asyncio.Event()
    room.provider.hooks["sent"] = gate.wait
    room.say(ada, script(("subscribe", {"name": "Bob"})))
    room.run(room.runtime.terminate(bob))

    gate.set()
    room.settle()

    assert [kind for kind, _payload in room.shown()] == ["notice"]


def test_an_agent_that_has_unsubscribed_receives_no_notice() -> None:
    room, ada, bob = parent_and_child()
    room.say(ada, script(("subscribe", {"name": "Bob"})))
    subscription = room.provider.results[-1]["subscription_id"]
    room.say(ada, script(("unsubscribe", {"subscription_id": subscription})))
    prompts = len(room.provider.prompts)

    room.run(room.runtime.terminate(bob))
    room.settle()

    assert len(room.provider.prompts) == prompts


def test_a_subscription_that_ends_while_its_notice_waits_for_the_log_gets_none() -> None:
    room, ada, bob = parent_and_child()
    room.say(ada, script(("subscribe", {"name": "Bob"})))
    subscription = room.provider.results[-1]
    agent = room.runtime._orchestrator.agents[ada]

    async def hold_the_log() -> None:
        room.provider.hooks.clear()
        await agent.log.lock.acquire()
        room.world.loop.call_later(6, agent.log.lock.release)

    # The commit of the turn waits in front of the notice.
    room.provider.hooks["sent"] = hold_the_log
    room.say(ada, script(("unsubscribe", subscription)))
    end = room.world.loop.create_task(room.runtime.terminate(bob))
    room.settle(10)

    assert end.done()
    assert "notice" not in [kind for kind, _ in room.shown()]
    assert not agent.history.pending
    room.check_no_failures()


def test_a_recovery_enqueues_the_last_message_of_an_agent_before_the_notice_of_its_end() -> None:
    room, ada, bob = parent_and_child()
    room.say(ada, script(("subscribe", {"name": "Bob"})))
    room.files.fail("append", log_of(room.session(ada)), errno.ENOSPC, sticky=True)
    room.say(bob, script(("complete", {"result": 1})))

    room.reopen(start=False)

    pending = room.agent(ada).history.pending.values()
    assert [message.kind for message in pending] == ["response", "notice"]
