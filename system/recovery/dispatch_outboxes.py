"""Pass 6: dispatch the outboxes of the logs; finish interrupted ends and records."""

from __future__ import annotations

from system.agents import event
from system.agents.agent import Agent
from system.agents.provider_state import ProviderState
from system.errors import RuntimeRefused, StorageError
from system.recovery.complete_records import complete_records
from system.recovery.root_recovery import RootRecovery
from system.sessions.session import SessionRecord, SessionState
from system.sessions.session_problem import Problem


async def dispatch_outboxes(recovery: RootRecovery) -> None:
    """Write the lines that are missing in other logs, then make each record agree with its log."""
    dispatcher = recovery.dispatcher
    agents = recovery.agents()
    for agent in agents:
        _enqueue_outbox(recovery, agent)
    # Errors and notices in the name of an agent come behind the messages that it has sent.
    for agent in agents:
        dispatcher.enqueue_errors(agent)
        dispatcher.enqueue_notices(agent, list(agent.history.subscriptions))
    recovery.report.redone = count_due(recovery)
    await dispatcher.dispatch()
    for agent in agents:
        dispatcher.pass_dispatched(agent)
        await _repair(recovery, agent)
    await complete_records(recovery)


def _enqueue_outbox(recovery: RootRecovery, agent: Agent) -> None:
    for seq, turn in agent.history.outbox.items():
        if turn.outbox.foreign:
            reason = f"the outbox of a turn has unknown entries: {turn.outbox.foreign}"
            agent.log.stop(reason)
            recovery.report_problem(agent.session_id, Problem.LOG_NEWER, reason)
            break
        recovery.dispatcher.redo_outbox(agent, turn.outbox, seq)


def count_due(recovery: RootRecovery) -> int:
    """Count the lines, and the creations, that are queued."""
    logs = [agent.log for agent in recovery.orchestrator.agents.values()]
    return sum(len(log.queue) + (log.creation is not None) for log in logs)


async def _repair(recovery: RootRecovery, agent: Agent) -> None:
    """Complete log and record of an agent; the next boot repeats refused writes."""
    history, log = agent.history, agent.log
    try:
        if log.record is None:
            await _write_record(recovery, agent)
        if history.ended and not history.termination_logged:
            await log.commit(lambda: [event.terminated(agent.agent_id, history.ended)])
            recovery.report.ended.append(agent.agent_id)
        if history.ended:
            await recovery.dispatcher.retire(agent)
    except (OSError, StorageError) as error:
        detail = f"it could not be repaired ({error})"
        recovery.report_problem(agent.session_id, Problem.FAILED, detail)
    except RuntimeRefused as refused:
        recovery.report_problem(agent.session_id, Problem.LOG_DAMAGED, str(refused))


async def _write_record(recovery: RootRecovery, agent: Agent) -> None:
    problem = recovery.record_problems.get(agent.session_id)
    data = agent.history.session
    if problem is not None and problem.problem is Problem.NEWER:
        agent.log.foreign_record = True
        recovery.report.problems.append(problem)
    if data is None or agent.log.foreign_record:
        return
    state = SessionState.TERMINATED if agent.history.ended else SessionState.SUSPENDED
    blob = ProviderState(agent.history.identity).encoded()
    record = SessionRecord(agent.session_id, data.provider, data.model, state, blob)
    await recovery.host.workers.run(lambda: recovery.store.replace(record))
    agent.log.record = record
    if problem is not None:
        recovery.report.problems.append(problem)
