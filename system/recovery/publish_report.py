"""Pass 10: complete the report; ask the providers for conversations that no session has."""

from __future__ import annotations

from contextlib import suppress

from system.agents.provider_state import ProviderState
from system.durable.ended import is_ended_conversation
from system.ports import ProviderError
from system.recovery.dispatch_outboxes import count_due
from system.recovery.root_recovery import RootRecovery


async def publish_report(recovery: RootRecovery) -> None:
    """Fill in the counts, and the leaked conversations unless a session cannot be read."""
    report, agents = recovery.report, recovery.orchestrator.agents.values()
    report.sessions = len(agents) - 1
    report.living = sum(agent.alive for agent in agents) - 1
    report.undispatched = count_due(recovery)
    report.damaged_rows += sorted(recovery.orchestrator.damaged_rows)
    # The empty directory of a child that a turn spawned was removed, and created again.
    created = {agent.session_id for agent in agents}
    report.orphans = [orphan for orphan in report.orphans if orphan not in created]
    if recovery.orchestrator.unserved:
        # The conversation of such a session would look like a leak.
        return
    known = {agent.history.identity for agent in agents}
    unknown: list[tuple[str, str]] = []
    for name, pool in sorted(recovery.orchestrator.multiplexer.pools.items()):
        with suppress(ProviderError):
            kept = await pool.identities()
            unknown += [(name, identity) for identity in kept if identity not in known]
    if unknown:
        # Only now are the records decoded, because few boots need their identities.
        records = [agent.log.record for agent in agents if agent.log.record is not None]
        known = {ProviderState.of_encoded(r.provider_state_blob).identity for r in records}
    unknown = [(name, identity) for name, identity in unknown if identity not in known]
    state = recovery.orchestrator.state
    if unknown and state is not None:
        # A provider may keep the conversation of a collected agent.
        ended = state.transact(lambda each: [is_ended_conversation(each, *one) for one in unknown])
        unknown = [one for one, is_ended in zip(unknown, ended, strict=True) if not is_ended]
    report.leaks += [f"{name}: {identity}" for name, identity in unknown]
