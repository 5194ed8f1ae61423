"""A child that the operator ends before it was given its bootstrap: its parent hears no error."""

from __future__ import annotations

import errno

from system.ports import JsonObject
from tests.unit.system.agents.boot import recovered
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    ONE,
    TWO,
    Room,
    completed,
    created,
    log_of,
    message,
    spawned,
)


def put_child_without_bootstrap(room: Room, *outbox: JsonObject) -> None:
    """Bob was created; the disk had no room for the line to him, and will not have any."""
    turn = completed("t", spawned=[spawned(BOB, TWO, "Bob")], outbox=list(outbox))
    room.put_session(ONE, [*created(ADA, "Ada"), turn])
    room.put_session(TWO, created(BOB, "Bob", ONE))
    room.files.fail("append", log_of(TWO), errno.ENOSPC)
    recovered(room)


def test_a_bootstrap_that_comes_too_late_is_no_error(room: Room) -> None:
    put_child_without_bootstrap(room)

    room.run(room.runtime.terminate(BOB))
    room.settle(5)

    assert room.named("Ada").pending == ()
    room.check_no_failures()


def test_a_message_that_comes_too_late_is_one(room: Room) -> None:
    put_child_without_bootstrap(room, message("m", ADA, BOB))

    room.run(room.runtime.terminate(BOB))
    room.settle(5)

    assert room.named("Ada").pending == ("m.error",)
    room.check_no_failures()
