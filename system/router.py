"""The router: which of several root agents gets a trigger that names none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from system.ports import JsonObject


class Candidate(NamedTuple):
    """A root agent that can take a trigger."""

    agent_id: str
    name: str
    metadata: JsonObject


class Router(Protocol):
    """Chooses the agent for a trigger that names none, where there are several."""

    async def route(self, trigger: JsonObject, candidates: Sequence[Candidate]) -> str | None:
        """Return the id of one of the candidates, or None if none of them fits.

        ``trigger`` has ``trigger_id, source, description, payload`` and ``key``. One that fits
        none waits until there are other candidates. After an exception it is tried again later.
        """
        ...
