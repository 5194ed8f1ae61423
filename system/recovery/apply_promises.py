"""Pass 7: the promises to ``state.db``; then the rows of turns that a crash has interrupted.

All of it is one transaction. A root without a database has made no such promise.
"""

from __future__ import annotations

from system.agents.agent import Agent
from system.agents.turn_trigger import promises_of
from system.durable.applied import applied_seq, check_applied
from system.durable.errors import RowDamaged
from system.durable.retention import remove_settled
from system.durable.state import Transaction
from system.durable.stores import Stores
from system.durable.trigger import SessionStatus
from system.recovery.root_recovery import RootRecovery
from system.sessions.session_problem import Problem


def apply_promises(recovery: RootRecovery) -> None:
    """Carry out the lines that were not, end the rows of ended agents, reclaim the others.

    Raises ``StateOutdated`` if the database is older than the logs, and its other errors.
    """
    durable = recovery.orchestrator.durable
    state, stores = durable.state, durable.stores
    if state is None or stores is None:
        return
    state.transact(lambda transaction: _recover(recovery, stores, transaction))
    for agent in recovery.agents():
        recovery.dispatcher.pass_kept(agent)


def _recover(recovery: RootRecovery, stores: Stores, transaction: Transaction) -> None:
    sessions, report = recovery.orchestrator.durable.sessions, recovery.report
    user = recovery.orchestrator.user
    check_applied(transaction, user.session_id, user.history.applied)
    for agent in recovery.agents():
        _redo(recovery, stores, transaction, agent)
    open_sessions = stores.open_sessions(transaction)
    for session_id in open_sessions:
        if sessions.status(session_id) is SessionStatus.ENDED:
            stores.end_session(transaction, session_id)
    recovered = stores.recover(transaction, sessions.is_served)
    report.reclaimed += [trigger.id for trigger in recovered.reclaimed]
    report.damaged_rows += [str(damaged) for damaged in recovered.damaged]
    report.unfed += [
        session_id
        for session_id in open_sessions
        if sessions.status(session_id) is not SessionStatus.ENDED
        and not sessions.is_served(session_id)
    ]
    remove_settled(transaction)


def _redo(recovery: RootRecovery, stores: Stores, transaction: Transaction, agent: Agent) -> None:
    """Carry out the lines of one agent that its row in ``applied`` has not reached."""
    try:
        agent.applied = applied_seq(transaction, agent.session_id)
    except RowDamaged as damaged:
        agent.log.stop(str(damaged))
        recovery.report_problem(agent.session_id, Problem.FAILED, str(damaged))
        return
    if not agent.log.stopped:
        check_applied(transaction, agent.session_id, agent.history.applied)
    if agent.log.log is not None:
        # Damage may have taken the end of the log: its numbers were used already.
        agent.history.seq = max(agent.history.seq, agent.applied)
        agent.log.log.skip_to(agent.applied)
    for seq, turn in sorted(agent.history.promises.items()):
        if turn.outbox.foreign:
            return
        if turn.trigger_id is not None and seq > agent.applied:
            stores.carry_out(transaction, promises_of(agent, turn, seq))
            agent.pass_applied(seq)
            recovery.report.carried_out += 1
