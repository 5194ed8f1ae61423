"""The tools of messages: permitted recipients, and delivery."""

from __future__ import annotations

import pytest

from system.ports import JsonObject
from tests.unit.system.agents.family import NEAR, Family
from tests.unit.system.agents.room import Room

PLAIN = "convert it to plain JSON first, or keep it in a file and pass the name of the file"


@pytest.mark.parametrize("to", ["Ada", "Eve", "Zoe"])
def test_a_message_goes_to_the_parent_a_sibling_or_a_child(family: Family, to: str) -> None:
    turn = family.turn("Bob")

    result = turn.call("send_message", to=to, payload="hello", reply_to="m")

    assert turn.sent() == [(family.id(to), "text", "hello")]
    assert result == {"message_id": turn.draft.outbox[0].message_id}
    assert turn.draft.outbox[0].reply_to == "m"
    assert turn.draft.outbox[0].sender == family.id("Bob")


def test_a_message_may_name_its_recipient_by_id(family: Family) -> None:
    turn = family.turn("Bob")
    turn.call("send_message", to=family.id("Eve"), payload=None)

    assert turn.sent() == [(family.id("Eve"), "text", None)]


def test_a_root_may_write_to_the_operator(family: Family) -> None:
    turn = family.turn("Ada")
    turn.call("send_message", to="USER", payload=1)

    assert turn.sent() == [("USER", "text", 1)]


@pytest.mark.parametrize("to", ["USER", "Rex", "Bob", "nobody", ""])
def test_a_message_to_anybody_else_is_refused(family: Family, to: str) -> None:
    turn = family.turn("Bob")

    assert turn.error("send_message", to=to, payload="hello") == f"{to!r} {NEAR}"
    assert turn.draft.outbox == []


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"payload": 1}, "to=None is not a text"),
        ({"to": 7, "payload": 1}, "to=7 is not a text"),
        ({"to": "Eve", "payload": 1, "reply_to": 7}, "reply_to=7 is not a message id"),
        ({"to": "Eve", "payload": float("inf")}, f"value: inf is not a finite number; {PLAIN}"),
        (
            {"to": "Eve", "payload": "x" * (1 << 20)},
            (
                "a payload of size_bytes=1048578 is over the limit of 1048576;"
                " keep it in a file of its own, and send its name"
            ),
        ),
    ],
)
def test_a_message_that_cannot_be_written_down_is_refused(
    family: Family, arguments: JsonObject, refusal: str
) -> None:
    turn = family.turn("Bob")

    assert turn.error("send_message", **arguments) == refusal
    assert turn.draft.outbox == []


def test_a_poke_has_no_payload(family: Family) -> None:
    turn = family.turn("Bob")
    result = turn.call("poke", to="Ada", payload="ignored")

    assert turn.sent() == [(family.id("Ada"), "poke", None)]
    assert list(result) == ["message_id"]


def test_a_broadcast_reaches_every_child_and_sibling_and_nobody_else(family: Family) -> None:
    turn = family.turn("Bob")
    child = turn.call("spawn_agent", name="Kim")["agent_id"]

    result = turn.call("broadcast", payload="all")

    assert turn.sent() == [
        (family.id("Zoe"), "text", "all"),
        (child, "text", "all"),
        (family.id("Eve"), "text", "all"),
    ]
    assert result == {"message_ids": [message.message_id for message in turn.draft.outbox]}


def test_a_broadcast_that_nobody_hears_is_refused_for_its_payload_all_the_same(
    family: Family,
) -> None:
    turn = family.turn("Rex")

    assert turn.call("broadcast", payload="all") == {"message_ids": []}
    assert "not a finite number" in turn.error("broadcast", payload=float("nan"))


def test_the_inbox_shows_what_arrived_during_the_turn_once(family: Family, room: Room) -> None:
    agent = room.agent(family.id("Bob"))
    agent.history.gated = True
    first = room.say(family.id("Bob"), "first")
    turn = family.turn("Bob", (first,))
    second = room.say(family.id("Bob"), "second")

    shown = turn.call("check_inbox")["messages"]

    assert shown == [
        {
            "message_id": second, "sender": "USER", "sender_name": "USER", "kind": "text",
            "payload": "second", "reply_to": None,
        }
    ]  # fmt: skip
    assert turn.draft.presented == [first, second]
    assert turn.call("check_inbox") == {"messages": []}
