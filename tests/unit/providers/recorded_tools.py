"""Tools that record their calls, and a helper that runs one request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sim.world import World
from system.ports import Conversation, JsonObject, Opening, Tools


@dataclass
class RecordedTools:
    """Answers every call with its number, and a repeated one with the first answer."""

    calls: list[tuple[str, str, object]] = field(default_factory=list)
    results: dict[str, JsonObject] = field(default_factory=dict)

    def call(self, call_id: str, name: str, arguments: JsonObject) -> JsonObject:
        self.calls.append((call_id, name, arguments))
        return self.results.setdefault(call_id, {"number": len(self.results)})

    async def perform(self, call_id: str, arguments: JsonObject) -> JsonObject:
        return self.call(call_id, "perform", arguments)


OPENING = Opening("s1", "model", "be brief")


def brain(prompt: str, tools: Tools) -> str:
    """Call two tools, and answer with their results."""
    results = [tools.call(str(number), "poke", {"to": prompt}) for number in range(2)]
    return f"{prompt}: {results}"


def say(
    world: World[Any], conversation: Conversation, prompt: str, key: str, tools: Tools | None = None
) -> str:
    """Run one request to its end; return the whole answer."""

    async def main() -> str:
        sent = conversation.send(prompt, key, tools or RecordedTools())
        return "".join([piece async for piece in sent])

    return world.loop.run_until_complete(main())
