"""Damage of a session costs its damaged lines only: no agent is removed or created again."""

from __future__ import annotations

import json

import pytest

from system.agents.provider_state import ProviderState
from system.sessions.session import SessionState
from system.sessions.session_problem import Problem
from tests.unit.system.agents.boot import END, problems, recovered
from tests.unit.system.agents.damage import remove, spoil
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.family import parent_and_child
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    EVE,
    ONE,
    THREE,
    TWO,
    Room,
    completed,
    created,
    enqueued,
    log_of,
    message,
    spawned,
    started,
)

SPAWNING = completed("t", spawned=[spawned(BOB, TWO, "Bob")])
WORK = enqueued("boot", ADA, BOB, "bootstrap")


def put_parent(room: Room) -> None:
    """Ada, after spawning Bob in session TWO."""
    room.put_session(ONE, [*created(ADA, "Ada"), SPAWNING])


# -- the line that names the agent --------------------------------------------------------


def test_a_child_whose_log_does_not_name_it_is_the_one_in_the_outbox(room: Room) -> None:
    put_parent(room)
    worked = [WORK, started("s", "boot"), completed("s", "boot")]
    room.put_session(TWO, [*created(BOB, "Bob", ONE), *worked])
    spoil(room, TWO, "agent.created")

    recovered(room)

    assert problems(room) == []
    assert room.runtime.report.missing == {TWO: ((2, 2),)}
    observe = room.named("Bob")
    assert (observe.agent_id, observe.parent_id, observe.last_turns, observe.pending) == (
        BOB,
        ADA,
        ("s",),
        (),
    )
    assert "agent.created" not in room.events(TWO)


def test_a_child_that_is_known_by_an_outbox_is_still_the_parent_of_its_own(room: Room) -> None:
    put_parent(room)
    room.put_session(TWO, [*created(BOB, "Bob", ONE), WORK])
    room.put_session(THREE, created(EVE, "Eve", TWO))
    spoil(room, TWO, "agent.created")

    recovered(room)

    assert room.named("Eve").parent_id == BOB
    assert room.runtime.report.detached == []


def test_a_child_that_is_known_by_an_outbox_stays_ended(room: Room) -> None:
    put_parent(room)
    room.put_session(TWO, [*created(BOB, "Bob", ONE), END], SessionState.TERMINATED)
    spoil(room, TWO, "agent.created")

    recovered(room)

    assert not room.named("Bob").alive
    assert not room.runtime.is_taken("Bob")
    assert room.events(TWO) == ["session.created", "agent.terminated"]


# -- a log of which nothing is left ------------------------------------------------------


@pytest.mark.parametrize("left", [b"", bytes(3000), b"\xa5\n" * 1000, None])
def test_a_child_that_has_existed_is_not_created_again(left: bytes | None, room: Room) -> None:
    put_parent(room)
    blob = ProviderState("c", turns=3).encoded()
    room.put_session(TWO, created(BOB, "Bob", ONE), SessionState.SUSPENDED, blob)
    if left is None:
        room.host.files.unlink(log_of(TWO))
    else:
        room.write(log_of(TWO), left)

    recovered(room)

    assert problems(room) == [(TWO, Problem.LOG_DAMAGED)]
    assert [observe.name for observe in room.runtime.view().agents] == ["Ada"]
    # And it is kept, until it is repaired.
    room.reopen(start=False)
    assert problems(room) == [(TWO, Problem.LOG_DAMAGED)]


def test_a_child_with_a_result_is_not_created_again(room: Room) -> None:
    result = enqueued("m", BOB, ADA, "response", "done")
    room.put_session(ONE, [*created(ADA, "Ada"), SPAWNING, result])
    room.put_session(TWO, [])

    recovered(room)

    assert problems(room) == [(TWO, Problem.LOG_DAMAGED)]
    assert [observe.name for observe in room.runtime.view().agents] == ["Ada"]


def test_a_child_whose_log_is_zeroed_after_a_reboot_is_not_created_again() -> None:
    room, _ada, bob = parent_and_child()
    child = room.session(bob)
    room.reopen(start=False)
    assert room.state(child) == "SUSPENDED"
    room.kill()
    room.write(log_of(child), bytes(len(room.read(log_of(child)))))

    recovered(room)

    assert problems(room) == [(child, Problem.LOG_DAMAGED)]
    assert [observe.name for observe in room.runtime.view().agents] == ["Ada"]


def test_a_child_whose_directory_is_gone_does_not_complete_a_second_time(room: Room) -> None:
    room.open()
    ada = room.create("Ada")
    work = json.dumps(script(("complete", {"result": "done"})))
    room.say(ada, script(("spawn_agent", {"name": "Bob", "instructions": work})))
    child = room.named("Bob").session_id
    room.kill()
    remove(room, child)

    room.open()
    room.settle(5)

    assert problems(room) == [(child, Problem.LOG_DAMAGED)]
    assert not room.exists(f"agents/{child}")
    reported = [line.data for line in room.lines(room.session(ada)) if "payload" in line.data]
    assert [data["payload"] for data in reported if data["kind"] == "response"] == ["done"]


def test_a_child_without_a_directory_that_has_sent_nothing_is_created(room: Room) -> None:
    put_parent(room)

    recovered(room)

    assert problems(room) == []
    assert (room.named("Bob").session_id, room.named("Bob").pending) == (TWO, ("boot",))


def test_the_parent_of_a_child_that_cannot_be_served_any_more_may_end(room: Room) -> None:
    put_parent(room)
    room.put_session(TWO, [], SessionState.TERMINATED)
    recovered(room)

    room.run(room.runtime.terminate(ADA))

    assert not room.named("Ada").alive


@pytest.mark.parametrize("left", [b"", bytes(3000), None])
def test_a_root_that_has_lived_is_no_orphan(left: bytes | None, room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"), SessionState.SUSPENDED)
    if left is None:
        room.host.files.unlink(log_of(ONE))
    else:
        room.write(log_of(ONE), left)

    recovered(room)

    assert problems(room) == [(ONE, Problem.LOG_DAMAGED)]
    assert room.runtime.report.orphans == []
    assert room.exists(f"agents/{ONE}")


# -- agents of whom nothing is left, or too much -----------------------------------------


def test_who_has_said_something_and_is_not_there_has_vanished(room: Room) -> None:
    room.put_session(ONE, [*created(ADA, "Ada"), enqueued("m", EVE, ADA)])

    assert recovered(room).report.vanished == [EVE]


def test_the_operator_and_the_runtime_never_vanish(room: Room) -> None:
    said = [enqueued("m", "USER", ADA), enqueued("n", "RUNTIME", ADA, "system")]
    room.put_session(ONE, [*created(ADA, "Ada"), *said])

    assert recovered(room).report.vanished == []


def test_nobody_counts_as_vanished_as_long_as_a_session_cannot_be_read(room: Room) -> None:
    room.put_session(ONE, [*created(ADA, "Ada"), enqueued("m", EVE, ADA)])
    room.put_session(TWO, [], SessionState.TERMINATED)

    recovered(room)

    assert problems(room) == [(TWO, Problem.LOG_DAMAGED)]
    assert room.runtime.report.vanished == []


def test_of_two_sessions_that_say_they_are_one_agent_the_first_is_served(room: Room) -> None:
    room.put_session(ONE, created(ADA, "Ada"))
    room.put_session(TWO, created(ADA, "Ada"))
    before = room.read(log_of(TWO))

    recovered(room)

    assert problems(room) == [(TWO, Problem.LOG_DAMAGED)]
    assert room.named("Ada").session_id == ONE
    assert room.read(log_of(TWO)) == before


# -- delivered messages ------------------------------------------------------------------


def test_a_message_whose_line_is_damaged_after_its_delivery_is_not_shown_again(
    room: Room,
) -> None:
    turn = completed("t", outbox=[message("m", ADA, BOB, payload="pay 100")])
    room.put_session(ONE, [*created(ADA, "Ada"), turn])
    paid = [enqueued("m", ADA, BOB, payload="pay 100"), started("s", "m"), completed("s", "m")]
    room.put_session(TWO, [*created(BOB, "Bob"), *paid])
    spoil(room, TWO, "message.enqueued")

    recovered(room)

    assert room.runtime.report.missing == {TWO: ((3, 3),)}
    assert room.named("Bob").pending == ()
    assert room.events(TWO).count("message.enqueued") == 0


def test_a_bootstrap_whose_line_is_damaged_after_its_delivery_is_not_shown_again(
    room: Room,
) -> None:
    put_parent(room)
    worked = [WORK, started("s", "boot"), completed("s", "boot")]
    room.put_session(TWO, [*created(BOB, "Bob", ONE), *worked])
    spoil(room, TWO, "message.enqueued")

    recovered(room)

    assert room.named("Bob").pending == ()
    assert room.runtime.report.redone == 0


# -- what cannot be repaired -------------------------------------------------------------


def test_an_end_that_cannot_be_finished_keeps_nobody_else_from_being_served(room: Room) -> None:
    # Its record is gone, and the line that names its provider: it is stopped.
    room.put_session(ONE, [*created(ADA, "Ada"), completed("t", terminate=True)], state=None)
    room.put_session(TWO, created(BOB, "Bob"))
    spoil(room, ONE, "session.created")

    recovered(room)

    assert problems(room) == [(ONE, Problem.LOG_DAMAGED)]
    assert room.named("Bob").alive
    assert not room.named("Ada").alive
