"""The router: chooses one of several root agents for a trigger without a session."""

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
    """Chooses the agent for a trigger without a session, if there are several."""

    async def route(self, trigger: JsonObject, candidates: Sequence[Candidate]) -> str | None:
        """Return the id of one of the candidates, or None if none of them fits.

        ``trigger`` has ``trigger_id, source, description, payload`` and ``key``. If no candidate
        fits, it waits until there are other candidates. After an exception it is tried again.
        """
        ...
