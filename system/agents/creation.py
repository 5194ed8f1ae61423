"""The creation of an agent: its record and first lines, until they are durable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from system.agents import event
from system.agents.provider_state import ProviderState
from system.ports import JsonObject
from system.sessions.session import SessionRecord, SessionState

Event: TypeAlias = tuple[str, JsonObject]
"""Event and data of a line that is not written yet."""


@dataclass(frozen=True, slots=True)
class Creation:
    """The record and the first lines of an agent whose log does not exist yet."""

    record: SessionRecord
    lines: tuple[Event, Event]
    """``session.created`` and ``agent.created``."""


def new_creation(
    session_id: str, provider: str, model: str, identity: str, state: SessionState,
    agent_created: JsonObject,
) -> Creation:  # fmt: skip
    """Return the creation of a session; ``agent_created`` is the data of that line."""
    blob = ProviderState(identity).encoded() if identity else b""
    session_created: JsonObject = {
        "provider": provider,
        "model": model,
        "system_prompt": agent_created["instructions"],
        "identity": identity,
    }
    lines = ((event.SESSION_CREATED, session_created), (event.AGENT_CREATED, agent_created))
    return Creation(SessionRecord(session_id, provider, model, state, blob), lines)
