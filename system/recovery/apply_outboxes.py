"""Pass 7: apply the outboxes to ``state.db``, then give back or end interrupted work.

All of it is one transaction. A root without a database gets one now if an outbox has an entry for
it, or if the root is older (format 1) and its logs have active reminders: this pass emits them all
as triggers. ``root.json`` names a new database after that transaction; after a crash before that,
the pass is repeated.
"""

from __future__ import annotations

from contextlib import suppress

from system.agents.agent import Agent, KnownTask
from system.agents.apply_outbox import reminder_spec, state_outbox_of
from system.durable.applied import applied_seq, check_applied, record_applied
from system.durable.errors import RowDamaged
from system.durable.open_state import open_state
from system.durable.retention import remove_settled
from system.durable.state import Transaction
from system.durable.stores import Stores
from system.durable.trigger import SessionStatus
from system.recovery.root_recovery import RootRecovery
from system.sessions.session_problem import Problem


def apply_outboxes(recovery: RootRecovery) -> None:
    """Apply the remaining outboxes, end the rows of ended agents, give back interrupted triggers.

    Raises ``StateOutdated`` if the database is older than the logs, and its other errors.
    """
    durable, root = recovery.orchestrator.durable, recovery.root
    if durable.state is None and any(map(_needs_state, recovery.agents())):
        durable.state = open_state(recovery.host, None, durable.clock)
        durable.begin(root.epoch)
    state, stores = durable.state, durable.stores
    if state is None or stores is None:
        return
    state.transact(lambda transaction: _recover(recovery, stores, transaction))
    if root.root_id is None:
        root.adopt(recovery.host.files, recovery.host.ids, state.root_id)
    for agent in recovery.agents():
        recovery.dispatcher.pass_dispatched(agent)


def _needs_state(agent: Agent) -> bool:
    history = agent.history
    return bool(
        history.reminders
        or history.applied
        or any(turn.has_state_entries for turn in history.outbox.values())
    )


def _recover(recovery: RootRecovery, stores: Stores, transaction: Transaction) -> None:
    sessions, report = recovery.orchestrator.durable.sessions, recovery.report
    user = recovery.orchestrator.user
    check_applied(transaction, user.session_id, user.history.applied)
    recovery.skip_lost(user, applied_seq(transaction, user.session_id))
    for agent in recovery.agents():
        _redo(recovery, stores, transaction, agent)
    open_sessions = stores.open_sessions(transaction)
    for session_id in open_sessions:
        if sessions.status(session_id) is SessionStatus.ENDED:
            stores.end_session(transaction, session_id)
    _know_tasks(recovery, stores, transaction)
    recovered = stores.recover(transaction, sessions.is_served)
    recovery.orchestrator.durable.to_perform = recovered.to_perform
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
    """Apply the outboxes of an agent's lines that its row in ``applied`` has not reached."""
    try:
        agent.applied = applied_seq(transaction, agent.session_id)
    except RowDamaged as damaged:
        agent.log.stop(str(damaged))
        recovery.report_problem(agent.session_id, Problem.FAILED, str(damaged))
        return
    if not agent.log.stopped and recovery.root.root_id is not None:
        check_applied(transaction, agent.session_id, agent.history.applied)
    recovery.skip_lost(agent, agent.applied)
    for seq, turn in sorted(agent.history.outbox.items()):
        if turn.outbox.foreign:
            return
        if turn.has_state_entries and seq > agent.applied:
            actions = recovery.orchestrator.durable.actions
            stores.apply(transaction, state_outbox_of(actions, agent, turn, seq))
            agent.pass_applied(seq)
            recovery.report.applied += 1
    if recovery.root.root_id is None and (agent.history.reminders or agent.history.applied):
        _take_over(stores, transaction, agent)


def _take_over(stores: Stores, transaction: Transaction, agent: Agent) -> None:
    """Emit the reminders of a root that had no database, and mark its lines as applied."""
    for reminder in agent.history.reminders.values():
        spec = reminder_spec(reminder, agent.session_id)
        with suppress(RowDamaged):
            stores.emitter.emit(transaction, spec, reminder.reminder_id)
    record_applied(transaction, agent.session_id, agent.history.seq)
    agent.pass_applied(agent.history.seq)


def _know_tasks(recovery: RootRecovery, stores: Stores, transaction: Transaction) -> None:
    """Give each agent its tasks that have not ended; report damaged rows."""
    sessions = recovery.orchestrator.sessions
    for task in stores.tasks.open_tasks(transaction):
        if isinstance(task, RowDamaged):
            recovery.report.damaged_rows.append(str(task))
        elif (agent := sessions.get(task.session_id)) is not None:
            agent.tasks[task.task_id] = KnownTask(task.status, task.todos, task.last_seq)
