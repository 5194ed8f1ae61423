"""A router whose answers a run chooses; it survives every crash of the machine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum

from system.ports import JsonObject
from system.router import Candidate


class Choice(StrEnum):
    """The answer to one call."""

    FIRST = "first"
    LAST = "last"
    NONE = "none"
    UNKNOWN = "unknown"
    """The id of no candidate."""
    BROKEN = "broken"
    TIMEOUT = "timeout"


class SimulatedRouter:
    """Implements ``system.router.Router``.

    ``answers`` are the answers to the next calls; after these the first candidate is chosen.
    ``unfit`` has, by the id of the trigger, the candidates that were all refused.
    """

    def __init__(self) -> None:
        self.answers: list[Choice] = []
        self.unfit: dict[str, frozenset[str]] = {}

    async def route(self, trigger: JsonObject, candidates: Sequence[Candidate]) -> str | None:
        """Give the planned answer."""
        trigger_id, answer = str(trigger["trigger_id"]), Choice.FIRST
        if self.answers:
            answer = self.answers.pop(0)
        self.unfit.pop(trigger_id, None)
        await asyncio.sleep(0)
        match answer:
            case Choice.NONE:
                self.unfit[trigger_id] = frozenset(each.agent_id for each in candidates)
                return None
            case Choice.UNKNOWN:
                return "nobody"
            case Choice.BROKEN:
                raise ConnectionResetError("the router is not there")
            case Choice.TIMEOUT:
                await asyncio.Event().wait()
        return candidates[-1 if answer is Choice.LAST else 0].agent_id
