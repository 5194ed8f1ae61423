"""Pass 9: a recovery notice for every agent whose turn was interrupted; where each stopped."""

from __future__ import annotations

from datetime import datetime, timedelta

from system.agents.agent import Agent
from system.agents.message import RUNTIME, Message, MessageKind
from system.ports import Json
from system.recording.crash_point import IncompleteExecution, analyze_crash_point
from system.recovery.root_recovery import RootRecovery


async def notify_agents(recovery: RootRecovery) -> None:
    """Write the notices, one for each agent; a second recovery writes no other one."""
    for agent in recovery.orchestrator.agents.values():
        if agent.history.open_turns and agent.alive:
            recovery.report.lost_turns[agent.agent_id] = tuple(agent.history.open_turns)
            notice = _notice(agent, recovery.last_ts[agent.session_id], recovery.orchestrator.now())
            recovery.dispatcher.enqueue(agent, notice)
    await recovery.dispatcher.dispatch()
    recovery.report.incomplete += [
        IncompleteExecution(record.execution_id, analyze_crash_point(record))
        for record in recovery.interrupted
    ]


def _notice(agent: Agent, last_ts: str, now: str) -> Message:
    history, lost = agent.history, list(agent.history.open_turns)
    passed = datetime.fromisoformat(now) - datetime.fromisoformat(last_ts)
    payload: Json = {
        "notice": "recovery",
        "v": 1,
        "downtime_ns": max(0, passed // timedelta(microseconds=1)) * 1000,
        "lost_turns": list[Json](lost),
        "pending": len(history.pending),
    }
    return Message(f"{lost[-1]}.lost", RUNTIME, agent.agent_id, MessageKind.SYSTEM, payload, now)
