"""The view of a runtime: the durable state of this moment."""

from __future__ import annotations

from typing import NamedTuple

from system.agents.message import Message, detached
from system.agents.orchestrator import Orchestrator
from system.ports import JsonObject


class AgentView(NamedTuple):
    """One agent. ``turns`` counts its committed turns, ``last_turns`` are the ids of the last 16.

    ``pending`` are the ids of its pending messages. ``stopped`` is the reason why nothing is
    written to its log until the next boot, or empty. ``trouble`` is the reason why its last
    turn failed, or empty; the turn is tried again.
    """

    agent_id: str
    session_id: str
    name: str
    parent_id: str | None
    alive: bool
    turns: int
    last_turns: tuple[str, ...]
    pending: tuple[str, ...]
    gated: bool
    permits: int
    metadata: JsonObject
    stopped: str
    trouble: str
    running: bool


class RuntimeView(NamedTuple):
    """All agents, parents before children, and the messages to the operator.

    ``user_stopped`` is the reason why no message reaches the operator until the next boot, or
    empty. ``in_doubt`` are the names of agents during whose creation a barrier failed: the next
    boot decides whether they exist. ``state_stopped`` is the reason why no trigger is run until
    the next boot, or empty.
    """

    agents: tuple[AgentView, ...]
    user: tuple[Message, ...]
    user_stopped: str = ""
    in_doubt: tuple[str, ...] = ()
    state_stopped: str = ""


def view_of(orchestrator: Orchestrator) -> RuntimeView:
    """Return the view of this moment, without agents that are still being created."""
    shown, in_doubt = [], []
    for node in orchestrator.tree:
        agent = orchestrator.agents[node.agent_id]
        history = agent.history
        if history.agent is None:
            if agent.log.stopped:
                in_doubt.append(node.name)
            continue
        shown.append(
            AgentView(
                node.agent_id, node.session_id, node.name, node.parent_id, agent.alive,
                history.turn_count, tuple(history.last_turns), tuple(history.pending),
                history.gated, history.permits, detached(history.metadata), agent.log.stopped,
                agent.work.trouble, agent.work.turns.task is not None,
            )
        )  # fmt: skip
    user, state = orchestrator.user, orchestrator.state
    return RuntimeView(
        tuple(shown),
        tuple(
            message._replace(payload=detached(message.payload))
            for message in user.history.pending.values()
        ),
        user.log.stopped,
        tuple(in_doubt),
        (state.stopped or "") if state is not None else "",
    )
