"""Turns of another version: effects that cannot be dispatched, and no other session is affected."""

from __future__ import annotations

import pytest

from system.agents import event
from system.ports import JsonObject
from system.sessions.session_problem import Problem
from tests.unit.system.agents.boot import problems, recovered
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    EVE,
    ONE,
    TWO,
    Room,
    completed,
    created,
    enqueued,
    log_of,
    message,
)

CONTROL: JsonObject = {"control_id": "c", "target": BOB, "op": "pause"}
ENDED: tuple[str, JsonObject] = (
    event.AGENT_TERMINATED, {"agent_id": BOB, "reason": "completed", "returned": []},
)  # fmt: skip
CHILD: JsonObject = {"agent_id": EVE, "name": "Eve"}
LETTER: JsonObject = {"message_id": "m", "to": [BOB]}


@pytest.mark.parametrize(
    "turn",
    [{"controls": [CONTROL]}, {"spawned": [CHILD]}, {"outbox": [LETTER]}],
    ids=["controls", "spawned", "outbox"],
)
def test_an_outbox_of_a_later_version_stops_its_agent_only(turn: JsonObject, room: Room) -> None:
    room.put_session(ONE, [*created(ADA, "Ada"), completed("t", **turn)])
    room.put_session(TWO, created(BOB, "Bob"))
    before = room.read(log_of(ONE))

    recovered(room)

    assert problems(room) == [(ONE, Problem.LOG_NEWER)]
    assert room.named("Ada").stopped.startswith("the outbox of a turn has unknown entries")
    assert room.read(log_of(ONE)) == before
    assert (room.named("Bob").alive, room.named("Bob").stopped) == (True, "")


@pytest.mark.parametrize("missing", ["spawned", "outbox"])
def test_a_turn_without_a_part_that_every_turn_has_stops_its_agent_only(
    missing: str, room: Room
) -> None:
    name, turn = completed("t")
    del turn[missing]
    room.put_session(ONE, [*created(ADA, "Ada"), (name, turn)])
    room.put_session(TWO, created(BOB, "Bob"))

    recovered(room)

    assert problems(room) == [(ONE, Problem.LOG_NEWER)]
    assert room.named("Bob").stopped == ""


@pytest.mark.parametrize(
    "member", [{"kind": "alarm"}, {"metadata": None}, {"kind": None}, {"message_id": ["m"]}]
)
@pytest.mark.parametrize("lives", [True, False], ids=["lives", "has ended"])
def test_a_message_that_nobody_here_knows_stops_its_sender_and_spoils_no_other_log(
    member: JsonObject, lives: bool, room: Room
) -> None:
    foreign: JsonObject = {**message("m", ADA, BOB), **member}
    room.put_session(ONE, [*created(ADA, "Ada"), completed("t", outbox=[foreign])])
    room.put_session(TWO, [*created(BOB, "Bob"), *([] if lives else [ENDED])])
    before = room.read(log_of(TWO))

    recovered(room)

    assert problems(room) == [(ONE, Problem.LOG_NEWER)]
    assert room.read(log_of(TWO)) == before
    room.reopen(start=False)
    assert problems(room) == [(ONE, Problem.LOG_NEWER)]
    assert (room.named("Bob").alive, room.named("Bob").stopped) == (lives, "")


def test_an_agent_with_such_a_turn_runs_nothing_more(room: Room) -> None:
    turn = completed("t", controls=[{"control_id": "c"}])
    room.put_session(ONE, [*created(ADA, "Ada"), turn, enqueued("m", "USER", ADA)])

    room.open()
    room.settle(10)

    assert room.provider.prompts == []
    assert room.named("Ada").pending == ("m",)
    room.check_no_failures()
