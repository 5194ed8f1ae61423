"""Pass 9: recovery notices, reports, and RESUME triggers.

An agent whose turn was interrupted gets a recovery notice. A RESUME is emitted for each ACTIVE
task of an agent that has no other reason to run. The recovery report names the point at which
each execution was interrupted.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from system.agents.agent import Agent
from system.agents.message import RUNTIME, Message, MessageKind
from system.agents.reporting import deliver_reports
from system.ports import Json
from system.recording.crash_point import IncompleteExecution, analyze_crash_point
from system.recording.records.status import ExecutionStatus, status_of
from system.recovery.root_recovery import RootRecovery


async def notify_agents(recovery: RootRecovery) -> None:
    """Write the notices, one for each agent; a second recovery writes none."""
    for agent in recovery.orchestrator.agents.values():
        if agent.history.open_turns and agent.alive:
            recovery.report.lost_turns[agent.agent_id] = tuple(agent.history.open_turns)
            notice = _notice(agent, recovery.last_ts[agent.session_id], recovery.orchestrator.now())
            recovery.dispatcher.enqueue(agent, notice)
    await recovery.dispatcher.dispatch()
    await deliver_reports(recovery.dispatcher)
    _remove_arrived(recovery)
    _resume_tasks(recovery)
    recovery.report.incomplete += [
        IncompleteExecution(record.execution_id, analyze_crash_point(record))
        for record in recovery.interrupted
        if status_of(record) is ExecutionStatus.INCOMPLETE
    ]


def _remove_arrived(recovery: RootRecovery) -> None:
    """Remove the reports that have arrived, so that a second recovery finds none."""
    durable = recovery.orchestrator.durable
    if durable.state is not None and durable.stores is not None and durable.stores.reports.kept:
        durable.state.transact(durable.stores.reports.remove_arrived)


def _resume_tasks(recovery: RootRecovery) -> None:
    """Emit RESUME for each ACTIVE task of an agent that has no other reason to run."""
    orchestrator = recovery.orchestrator
    state, stores = orchestrator.durable.state, orchestrator.durable.stores
    idle = set()
    for node in orchestrator.tree:
        agent = orchestrator.agents[node.agent_id]
        is_served = orchestrator.durable.sessions.is_served(node.session_id)
        is_resumed = recovery.resume.includes(is_root=node.parent_id is None)
        if agent.tasks and is_served and is_resumed and not agent.history.pending:
            idle.add(node.session_id)
    if idle and state is not None and stores is not None:
        recovery.report.resumed += state.transact(
            lambda transaction: stores.tasks.resume(transaction, idle.__contains__)
        )


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
