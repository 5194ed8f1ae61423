"""A view as the running system would show it, made from a look, and changed in one place."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oracles.runtime.fact import Message
from oracles.runtime.seen import Seen


@dataclass(frozen=True, slots=True)
class Agent:
    agent_id: str
    session_id: str
    name: str
    parent_id: str | None
    alive: bool
    turns: Sequence[str]
    pending: Sequence[str]
    gated: bool
    permits: int
    metadata: Mapping[str, Any]
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class View:
    agents: Sequence[Agent]
    user: Sequence[Message]


def view_of(
    seen: Seen,
    *,
    hidden: Collection[str] = (),
    user: Sequence[Message] | None = None,
    **changes: Mapping[str, Any],
) -> View:
    """Return what ``seen`` adds up to; ``changes`` are by the name of an agent."""
    agents = []
    for fold in seen.agents.values():
        assert fold.agent is not None
        parent = seen.sessions.get(fold.agent.parent_session_id or "")
        agent = Agent(
            fold.agent_id, fold.session_id, fold.agent.name,
            parent.fold.agent_id if parent else None, not fold.ended, tuple(fold.turns),
            tuple(fold.pending), fold.gated, fold.permits, fold.metadata,
        )  # fmt: skip
        if agent.name not in hidden:
            agents.append(replace(agent, **changes.get(agent.name, {})))
    pending = tuple(seen.user.enqueued[key] for key in seen.user.pending)
    return View(tuple(agents), pending if user is None else user)
