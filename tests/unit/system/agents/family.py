"""Families of agents for the tests in this room, and turns whose tools a test calls itself."""

from __future__ import annotations

from typing import Any

from system.agents.tools import TurnTools
from system.ports import Json, JsonObject
from system.runtime import Options
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import Room

NEAR = "is no living parent, child or sibling of this agent"
"""Why a tool refuses an agent that is out of reach."""


def parent_and_child(options: Options | None = None) -> tuple[Room, str, str]:
    """Ada and her child Bob, both at rest."""
    room = Room(options)
    room.open()
    ada = room.create("Ada")
    room.say(ada, script(("spawn_agent", {"name": "Bob", "instructions": "work"})))
    return room, ada, room.named("Bob").agent_id


class Family:
    """Ada is a root with the children Bob and Eve; Zoe is a child of Bob; Rex another root."""

    def __init__(self, room: Room) -> None:
        self.room = room
        room.open()
        ada = room.create("Ada")
        room.create("Rex")
        zoe = script(("spawn_agent", {"name": "Zoe"}))
        room.say(ada, script(("spawn_agent", {"name": "Bob"}), ("spawn_agent", {"name": "Eve"})))
        room.say(self.id("Bob"), zoe)
        room.provider.results.clear()

    def id(self, name: str) -> str:
        return self.room.named(name).agent_id

    def turn(self, name: str, presented: tuple[str, ...] = ()) -> Turn:
        agent = self.room.agent(self.id(name))
        return Turn(TurnTools(self.room.runtime._orchestrator, agent, "turn", presented))


class Turn:
    """One turn whose tools are called from here; every call has an id of its own."""

    def __init__(self, tools: TurnTools) -> None:
        self.tools = tools
        self.draft = tools.draft
        self._calls = 0

    def call(self, tool: str, /, **arguments: Json) -> JsonObject:
        self._calls += 1
        return self.tools.call(f"call {self._calls}", tool, arguments)

    def error(self, tool: str, /, **arguments: Json) -> str:
        result = self.call(tool, **arguments)
        assert list(result) == ["error"]
        return str(result["error"])

    def sent(self) -> list[tuple[str, str, Any]]:
        return [
            (message.recipient, message.kind.value, message.payload)
            for message in self.draft.outbox
        ]
