"""Mutants of recovery: state that is not restored, and work that is never finished."""

from __future__ import annotations

from oracles.runtime.violations import BrokenTree, LateReminder, LostControl, LostNotice
from oracles.violation import (
    Garbage,
    InvalidState,
    LostAck,
    OutOfSync,
    Starved,
    UnreadableAfterCrash,
)
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch


def _after_applying(statement: str) -> tuple[SourcePatch]:
    """Return a patch that runs ``statement`` on every recovered ``history``."""
    apply = "history = History.from_lines(log.recovered)"
    return (SourcePatch("system.recovery.apply_logs", apply, f"{apply}\n{statement}"),)


permits_are_not_restored = Mutant(
    "a permit is logged and never restored",
    "runtime",
    (OutOfSync, LostControl, Starved),
    _after_applying("history.permits = 0"),
)

reminders_are_not_restored = Mutant(
    "reminders are volatile",
    "runtime",
    (LateReminder, LostAck),
    (
        SourcePatch(
            "system.recovery.apply_outboxes",
            "open_sessions = stores.open_sessions(transaction)",
            """
            transaction.execute("DELETE FROM triggers WHERE dedup_key LIKE 'reminder:%'")
            open_sessions = stores.open_sessions(transaction)
            """,
        ),
    ),
)

subscriptions_are_not_restored = Mutant(
    "subscriptions are volatile",
    "runtime",
    (LostNotice, OutOfSync),
    _after_applying("history.subscriptions.clear()"),
)

ended_sessions_stay_suspended = Mutant(
    "the record of an agent that has ended is not replaced",
    "runtime",
    (InvalidState, OutOfSync),
    (
        SourcePatch(
            "system.agents.dispatcher",
            "await agent.log.save(SessionState.TERMINATED, record.provider_state_blob)",
            "",
        ),
    ),
)

orphans_are_not_removed = Mutant(
    "the files of an interrupted creation are never removed",
    "runtime",
    (BrokenTree, Garbage),
    (
        SourcePatch(
            "system.recovery.place_agents",
            "recovery.store.remove(session_id)",
            "pass",
        ),
    ),
)

taken_name_stops_all = Mutant(
    "one agent that the tree refuses ends the recovery",
    "runtime",
    (UnreadableAfterCrash,),
    (
        SourcePatch(
            "system.recovery.place_agents",
            "agent = orchestrator.new_agent(data.agent_id, session_id, history)",
            """
            if data.name in orchestrator.tree.names.values():
                raise ValueError(f"there is an agent called {data.name!r} already")
            agent = orchestrator.new_agent(data.agent_id, session_id, history)
            """,
        ),
    ),
)
