"""Pass 8: the state ACTIVE of records becomes SUSPENDED, because no conversation is open."""

from __future__ import annotations

from system.errors import StorageError
from system.recovery.root_recovery import RootRecovery
from system.sessions.session import SessionState
from system.sessions.session_problem import Problem


async def suspend_sessions(recovery: RootRecovery) -> None:
    """Replace the records durably; a record that the disk refuses is reported."""
    for agent in recovery.orchestrator.agents.values():
        record = agent.log.record
        if record is None or record.state is not SessionState.ACTIVE:
            continue
        try:
            await agent.log.save(SessionState.SUSPENDED, record.provider_state_blob)
        except (OSError, StorageError) as error:
            detail = f"its record still says ACTIVE ({error})"
            recovery.report_problem(agent.session_id, Problem.FAILED, detail)
        else:
            recovery.report.suspended.append(agent.session_id)
