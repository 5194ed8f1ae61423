"""Pass 5: place the agents in the tree, parents first; remove orphans."""

from __future__ import annotations

from system.agents.agent import Agent
from system.agents.history import History
from system.agents.message import RUNTIME, USER, USER_SESSION
from system.agents.session_data import SessionData
from system.agents.tree import Node
from system.recovery.orphans import SessionEvidence, SessionIndex, Verdict, is_damaged
from system.recovery.parents_first import Placement, parents_first
from system.recovery.root_recovery import RootRecovery
from system.sessions.session import SessionState
from system.sessions.session_problem import Problem


def place_agents(recovery: RootRecovery) -> None:
    """Create an agent from every history; remove or report sessions without one."""
    orchestrator = recovery.orchestrator
    user = orchestrator.new_agent(USER, USER_SESSION, recovery.histories.pop(USER_SESSION))
    user.log.log = recovery.logs[USER_SESSION]
    index = SessionIndex({USER_SESSION: user.history, **recovery.histories})
    for session_id in index.spawned:
        if session_id in recovery.histories or session_id in orchestrator.unserved:
            continue
        if not orchestrator.is_collected(index.spawned[session_id].agent_id):
            _judge_missing(recovery, session_id, index)
    for session_id, history in list(recovery.histories.items()):
        if history.agent is None:
            _judge(recovery, session_id, history, index)
    for placement in parents_first(recovery.histories):
        _place(recovery, placement)
    _pass_dispatched(recovery)
    for agent in recovery.agents():
        _hide_unserved(recovery, agent)
    if not (orchestrator.unserved or orchestrator.lost):
        missing = sorted(index.senders - {RUNTIME, *orchestrator.agents})
        recovery.report.vanished = [each for each in missing if not orchestrator.is_collected(each)]


def _pass_dispatched(recovery: RootRecovery) -> None:
    """Apply to each log its watermarks in the snapshots of others, as its end may be lost."""
    agents = {agent.session_id: agent for agent in recovery.agents()}
    for recipient in recovery.orchestrator.agents.values():
        for session_id, mark in recipient.history.dispatched_of.items():
            if (agent := agents.get(session_id)) is None or agent.log.log is None:
                continue
            history = agent.history
            history.dispatched = max(history.dispatched, mark)
            recovery.skip_lost(agent, mark)


def _hide_unserved(recovery: RootRecovery, parent: Agent) -> None:
    """Register the children of an agent that may be living but cannot be read in this lifetime."""
    orchestrator, history = recovery.orchestrator, parent.history
    for session_id, spawn in history.children.items():
        if spawn.agent_id in orchestrator.agents or session_id not in orchestrator.unserved:
            continue
        if spawn.agent_id not in history.completed_children:
            orchestrator.tree.hide(parent.agent_id, spawn.name)


def _judge(recovery: RootRecovery, session_id: str, history: History, index: SessionIndex) -> None:
    """Decide on a session without ``agent.created``."""
    log, problem = recovery.logs.get(session_id), recovery.record_problems.get(session_id)
    evidence = SessionEvidence(
        history,
        log is not None and is_damaged(log.report),
        recovery.records.get(session_id),
        problem is not None and problem.problem is not Problem.NO_RECORD,
    )
    verdict = index.verdict_on(session_id, evidence)
    if verdict is Verdict.NAMED:
        history.agent = index.spawned[session_id]
        return
    del recovery.histories[session_id]
    recovery.records.pop(session_id, None)
    if log is not None:
        recovery.close_log(session_id)
    if verdict is Verdict.LOST:
        recovery.orchestrator.lost.add(session_id)
        detail = "it does not say which agent it is"
        recovery.report_problem(session_id, Problem.LOG_DAMAGED, detail)
    elif verdict is Verdict.ORPHAN:
        _remove(recovery, session_id)


def _judge_missing(recovery: RootRecovery, session_id: str, index: SessionIndex) -> None:
    """Decide on a spawned session without a directory: it is created later, or lost."""
    nothing = SessionEvidence(History(), log_is_damaged=False, record=None, record_is_damaged=False)
    if index.verdict_on(session_id, nothing) is Verdict.LOST:
        recovery.orchestrator.lost.add(session_id)
        recovery.report_problem(session_id, Problem.LOG_DAMAGED, "nothing of it is left")


def _remove(recovery: RootRecovery, session_id: str) -> None:
    try:
        recovery.store.remove(session_id)
    except OSError as error:
        detail = f"an orphan could not be removed ({error})"
        recovery.report_problem(session_id, Problem.FAILED, detail)
    else:
        recovery.report.orphans.append(session_id)


def _place(recovery: RootRecovery, placement: Placement) -> None:
    session_id = placement.session_id
    orchestrator, history = recovery.orchestrator, recovery.histories[session_id]
    data = history.agent
    assert data is not None
    if placement.detached:
        recovery.report.detached.append(session_id)
    if (duplicate := orchestrator.agents.get(data.agent_id)) is not None:
        owner = duplicate.session_id
        detail = f"it says that it is agent {data.agent_id}, which is session {owner}"
        recovery.report_problem(session_id, Problem.LOG_DAMAGED, detail)
        recovery.close_log(session_id)
        orchestrator.unserved.add(session_id)
        return
    agent = orchestrator.new_agent(data.agent_id, session_id, history)
    agent.log.log = recovery.logs[session_id]
    agent.log.record = record = recovery.records.get(session_id)
    if history.session is None:
        if record is not None:
            history.session = SessionData(record.provider_name, record.model, data.instructions)
        else:
            agent.log.stop("neither its log nor its record says which provider it has")
    if agent.alive and record is not None and record.state is SessionState.TERMINATED:
        # Only damage can cause this; an agent that has ended is not run again.
        agent.log.stop("its record says that it has ended, its log does not")
    node = Node(data.agent_id, session_id, data.name, placement.parent_id, alive=agent.alive)
    orchestrator.tree.add(node)
