"""A view as the running system would show it, made from a agent_view, and changed in one node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oracles.runtime.log_records import MessageRecord
from oracles.runtime.root_snapshot import RootSnapshot


@dataclass(frozen=True, slots=True)
class AgentRecord:
    agent_id: str
    session_id: str
    name: str
    parent_id: str | None
    alive: bool
    turns: int
    last_turns: Sequence[str]
    pending: Sequence[str]
    gated: bool
    permits: int
    metadata: Mapping[str, Any]
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class View:
    agents: Sequence[AgentRecord]
    user: Sequence[MessageRecord]


def view_of(
    snapshot: RootSnapshot,
    *,
    hidden: Collection[str] = (),
    user: Sequence[MessageRecord] | None = None,
    **changes: Mapping[str, Any],
) -> View:
    """Return what ``snapshot`` adds up to; ``changes`` are by the name of an agent."""
    agents = []
    for state in snapshot.agents.values():
        assert state.agent is not None
        parent = snapshot.sessions.get(state.agent.parent_session_id or "")
        agent = AgentRecord(
            state.agent_id, state.session_id, state.agent.name,
            parent.state.agent_id if parent else None, not state.ended, len(state.turns),
            tuple(state.turns)[-16:], tuple(state.pending), state.gate.closed, state.gate.permits,
            state.metadata,
        )  # fmt: skip
        if agent.name not in hidden:
            agents.append(replace(agent, **changes.get(agent.name, {})))
    pending = tuple(snapshot.user.enqueued[key] for key in snapshot.user.pending)
    return View(tuple(agents), pending if user is None else user)
