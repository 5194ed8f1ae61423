"""Pass 6: the outbox of a turn that was committed before the crash is dispatched."""

from __future__ import annotations

import errno

import pytest

from system.ports import JsonObject
from system.runtime import Options
from system.sessions.session import SessionState
from system.storage.framing import Framing
from tests.unit.system.agents.boot import END, recovered
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    ONE,
    TWO,
    Room,
    completed,
    created,
    enqueued,
    log_of,
    message,
    spawned,
)


def test_a_message_in_the_outbox_of_a_turn_is_delivered(room: Room) -> None:
    # The crash came between the line of the turn and the delivery of its message.
    turn = completed("t", outbox=[message("x", ADA, "USER", payload="hello")])
    room.put_session(ONE, [*created(ADA, "Ada"), turn])

    recovered(room)

    assert room.to_user() == [("text", "hello")]
    assert room.runtime.report.redone == 1
    room.reopen(start=False)
    assert room.to_user() == [("text", "hello")]
    assert room.runtime.report.redone == 0


def test_a_message_that_is_there_already_is_not_delivered_twice(room: Room) -> None:
    turn = completed("t", outbox=[message("x", ADA, BOB)])
    room.put_session(ONE, [*created(ADA, "Ada"), turn])
    room.put_session(TWO, [*created(BOB, "Bob", ONE), enqueued("x", ADA, BOB)])

    recovered(room)

    assert room.events(TWO).count("message.enqueued") == 1


def test_a_message_to_an_agent_that_has_ended_comes_back(room: Room) -> None:
    turn = completed("t", outbox=[message("x", ADA, BOB)])
    room.put_session(ONE, [*created(ADA, "Ada"), turn])
    room.put_session(TWO, [*created(BOB, "Bob", ONE), END], SessionState.TERMINATED)

    recovered(room)

    assert room.named("Ada").pending == ("x.error",)


def test_a_message_to_a_session_that_cannot_be_read_waits_for_a_later_boot(room: Room) -> None:
    turn = completed("t", outbox=[message("x", ADA, BOB)])
    room.put_session(ONE, [*created(ADA, "Ada"), turn])
    room.put_session(TWO, created(BOB, "Bob", ONE))
    room.files.fail("pread", log_of(TWO), errno.EIO)
    recovered(room)
    assert room.named("Ada").pending == ()

    room.reopen(start=False)

    assert room.named("Bob").pending == ("x",)


@pytest.mark.parametrize("left", ["nothing", "a record", "a first line", "both lines"])
@pytest.mark.parametrize("framing", list(Framing))
def test_a_child_that_a_turn_has_spawned_is_made_of_whatever_is_left(
    left: str, framing: Framing
) -> None:
    # Planted bug R16: the crash came somewhere in the creation.
    room = Room(Options(framing=framing))
    room.put_session(
        ONE, [*created(ADA, "Ada"), completed("t", spawned=[spawned(BOB, TWO, "Bob")])]
    )
    if left != "nothing":
        lines = {"a record": 0, "a first line": 1, "both lines": 2}[left]
        room.put_session(TWO, created(BOB, "Bob", ONE)[:lines])

    recovered(room)

    assert room.events(TWO) == ["session.created", "agent.created", "message.enqueued"]
    assert room.named("Bob").parent_id == ADA
    assert room.named("Bob").pending == ("boot",)
    assert room.state(TWO) == "SUSPENDED"
    assert room.runtime.report.orphans == []


def test_a_child_that_has_its_bootstrap_already_is_not_given_another(room: Room) -> None:
    # Damage took the line between.
    room.put_session(
        ONE, [*created(ADA, "Ada"), completed("t", spawned=[spawned(BOB, TWO, "Bob")])]
    )
    room.put_session(TWO, [created(BOB, "Bob")[0], enqueued("boot", ADA, BOB, "bootstrap")])

    recovered(room)

    assert room.events(TWO) == ["session.created", "message.enqueued", "agent.created"]
    assert room.named("Bob").pending == ("boot",)


def test_a_spawned_child_whose_session_cannot_be_read_is_not_created_twice(room: Room) -> None:
    room.put_session(
        ONE, [*created(ADA, "Ada"), completed("t", spawned=[spawned(BOB, TWO, "Bob")])]
    )
    room.put_session(TWO, created(BOB, "Bob", ONE))
    room.files.fail("pread", log_of(TWO), errno.EIO)

    recovered(room)

    assert [agent.name for agent in room.runtime.view().agents] == ["Ada"]
    assert room.events(TWO) == ["session.created", "agent.created"]


def test_a_spawned_child_that_has_ended_stays_ended(room: Room) -> None:
    room.put_session(
        ONE, [*created(ADA, "Ada"), completed("t", spawned=[spawned(BOB, TWO, "Bob")])]
    )
    room.put_session(TWO, [*created(BOB, "Bob", ONE), END], SessionState.TERMINATED)

    recovered(room)

    assert not room.named("Bob").alive
    assert room.events(TWO)[-1] == "agent.terminated"


def test_a_control_in_the_outbox_of_a_turn_reaches_the_child(room: Room) -> None:
    control: JsonObject = {"control_id": "c", "target": BOB, "op": "gate"}
    room.put_session(ONE, [*created(ADA, "Ada"), completed("t", controls=[control])])
    room.put_session(TWO, created(BOB, "Bob", ONE))

    recovered(room)

    assert room.named("Bob").gated
    assert room.lines(TWO)[-1].data == {"control_id": "c", "by": ADA}


def test_a_completion_is_finished(room: Room) -> None:
    # Planted bug R12: the line of the turn is the end; missing lines follow.
    turn = completed(
        "t", terminate=True, returned=["m"], outbox=[message("r", ADA, "USER", "response", 42)]
    )
    room.put_session(ONE, [*created(ADA, "Ada"), enqueued("m", "USER", ADA), turn])

    recovered(room)

    assert room.to_user() == [
        ("response", 42),
        ("error", {"reason": "the recipient has ended", "message_id": "m"}),
    ]
    assert room.runtime.report.ended == [ADA]
    assert room.events(ONE)[-1] == "agent.terminated"
    assert room.state(ONE) == "TERMINATED"
    room.reopen(start=False)
    assert room.runtime.report.ended == []
    assert len(room.to_user()) == 2


def test_a_subscriber_receives_notice_of_an_end_before_the_crash(room: Room) -> None:
    turn = completed("t", subscribed=[{"subscription_id": "s", "target": BOB}])
    room.put_session(ONE, [*created(ADA, "Ada"), turn])
    room.put_session(TWO, [*created(BOB, "Bob", ONE), END], SessionState.TERMINATED)

    recovered(room)

    assert room.named("Ada").pending == ("s.notice",)


def test_a_dispatch_that_the_disk_refuses_is_reported_and_repeated_later(room: Room) -> None:
    turn = completed("t", outbox=[message("x", ADA, "USER", payload="hello")])
    room.put_session(ONE, [*created(ADA, "Ada"), turn])
    room.files.fail("append", "user/events.jsonl", errno.ENOSPC)

    recovered(room)

    assert room.runtime.report.undispatched == 1
    assert room.to_user() == []
    room.settle(1)
    assert room.to_user() == [("text", "hello")]
