"""Calls of the operator between the recovery and ``start``: nothing runs, and nothing is lost."""

from __future__ import annotations

from system.recovery.resume import Resume
from system.runtime import Options
from tests.unit.system.agents.emitting import emit, status
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    ONE,
    TWO,
    Room,
    completed,
    created,
    message,
    opened,
)
from tests.unit.system.agents.test_routing import FakeRouter

NONE = Options(resume=Resume.NONE)


def test_no_router_is_called_before_the_start() -> None:
    router = FakeRouter("Ada")
    room = Room(Options(router=router))
    room.open(start=False)
    room.create("Ada")
    trigger_id = emit(room, None)
    room.create("Bob")
    room.settle(1)
    assert router.asked == []

    room.start()
    room.settle()

    assert len(router.asked) == 1
    assert status(room, trigger_id) == ("DONE", 1)


def test_a_trigger_that_is_due_before_the_start_wakes_its_agent() -> None:
    room, ada = opened(NONE)
    room.reopen(start=False)
    trigger_id = emit(room, ada)
    room.create("Bob")
    room.settle(1)
    assert status(room, trigger_id) == ("PENDING", 0)

    room.start()
    room.settle()

    assert status(room, trigger_id) == ("DONE", 1)


def test_a_message_that_is_sent_before_the_start_wakes_its_agent() -> None:
    room, ada = opened(NONE)
    room.reopen(start=False)
    room.say(ada, "hello")
    assert room.named("Ada").turns == 0

    room.start()
    room.settle()

    assert room.named("Ada").turns == 1


def test_a_notice_that_comes_before_the_start_wakes_its_agent() -> None:
    room, ada, bob = parent_and_child(NONE)
    room.say(ada, script(("subscribe", {"name": "Bob"})))
    room.reopen(start=False)
    turns = room.named("Ada").turns
    room.run(room.runtime.terminate(bob))

    room.start()
    room.settle()

    assert room.named("Ada").turns == turns + 1


def test_a_message_that_the_recovery_has_dispatched_wakes_no_agent_that_is_not_resumed() -> None:
    room = Room(NONE)
    room.put_session(ONE, [*created(ADA, "Ada"), completed("t", outbox=[message("m", ADA, BOB)])])
    room.put_session(TWO, created(BOB, "Bob"))

    room.open()
    room.settle()

    assert (room.named("Bob").pending, room.named("Bob").turns) == (("m",), 0)
