"""The operator's calls: what each does, and what each refuses."""

from __future__ import annotations

from tests.unit.system.agents.room import Room


def test_a_message_makes_an_agent_take_a_turn(room: Room) -> None:
    room.open()
    ada = room.create("Ada")

    room.say(ada, "hello")

    assert room.shown() == [("text", "hello")]
    assert len(room.named("Ada").turns) == 1
    room.calm()
