"""Three agents and few slots: the world of the tests of the multiplexer."""

from __future__ import annotations

from system.runtime import Options
from tests.unit.system.agents.room import Room


def three_roots(slots: int = 2) -> tuple[Room, list[str]]:
    """Three roots; their conversations are called c1, c2 and c3."""
    room = Room(Options(slots=slots))
    room.open()
    agents = [room.create(name) for name in ("Ada", "Bob", "Cleo")]
    room.provider.asked.clear()
    return room, agents


def state(room: Room, agent_id: str) -> str:
    return room.state(room.session(agent_id))
