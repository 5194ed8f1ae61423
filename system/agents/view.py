"""What the runtime shows of itself: durable facts only, as they are at this moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from system.agents.message import Message
from system.agents.orchestrator import Orchestrator
from system.ports import JsonObject


class AgentView(NamedTuple):
    """One agent. ``turns`` are the ids of its committed turns, ``pending`` of its messages.

    ``stopped`` says why it takes nothing more until the next boot, or is empty. ``trouble``
    says why its last turn has not happened, and is empty when it has; the turn is tried again.
    """

    agent_id: str
    session_id: str
    name: str
    parent_id: str | None
    alive: bool
    turns: tuple[str, ...]
    pending: tuple[str, ...]
    gated: bool
    permits: int
    metadata: JsonObject
    stopped: str
    trouble: str
    running: bool


@dataclass(frozen=True, slots=True)
class RuntimeView:
    """All agents in the order in which they were placed, and the messages to the operator.

    ``user_stopped`` says why nothing more reaches the operator until the next boot, or is empty.
    ``unborn`` are the names of those whose birth a failed barrier has stopped: whether they
    exist, the next boot will know.
    """

    agents: tuple[AgentView, ...]
    user: tuple[Message, ...]
    user_stopped: str = ""
    in_doubt: tuple[str, ...] = ()


def view_of(orchestrator: Orchestrator) -> RuntimeView:
    """Return what there is now; an agent that is still being born is not there."""
    shown, in_doubt = [], []
    for node in orchestrator.tree:
        agent = orchestrator.agents[node.agent_id]
        history = agent.history
        if history.agent is None:
            if agent.stopped:
                in_doubt.append(node.name)
            continue
        shown.append(
            AgentView(
                node.agent_id, node.session_id, node.name, node.parent_id, agent.alive,
                tuple(history.turns), tuple(history.pending), history.gated, history.permits,
                dict(history.metadata), agent.stopped, agent.trouble, agent.running is not None,
            )
        )  # fmt: skip
    user = orchestrator.user
    return RuntimeView(
        tuple(shown), tuple(user.history.pending.values()), user.stopped, tuple(in_doubt)
    )
