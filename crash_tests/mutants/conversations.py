"""Mutants of the multiplexer: conversations that differ from the log, and leaked ones."""

from __future__ import annotations

from json import JSONDecodeError

from oracles.runtime.violations import ConversationMismatch, LeakedConversation
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

stale_blob_is_trusted = Mutant(
    "a stale provider blob takes the conversation back",
    "runtime",
    (ConversationMismatch,),
    (
        SourcePatch(
            "system.agents.multiplexer",
            'blob = state.blob if state.turns == agent.history.turn_count else b""',
            "blob = state.blob",
        ),
    ),
)

identity_is_saved_late = Mutant(
    "a conversation's identity is saved only when it is suspended",
    "runtime",
    (JSONDecodeError,),
    (
        SourcePatch(
            "system.agents.creation",
            'blob = ProviderState(identity).encoded() if identity else b""',
            'blob = b""',
        ),
        SourcePatch(
            "system.agents.multiplexer",
            "from asyncio import Future, get_running_loop",
            """
            from asyncio import Future, get_running_loop
            from json import loads
            """,
        ),
        SourcePatch(
            "system.agents.multiplexer",
            "await agent.log.save(SessionState.ACTIVE, kept.encoded())",
            """
            record = agent.log.record
            blob = record.provider_state_blob if record is not None else b""
            await agent.log.save(SessionState.ACTIVE, blob)
            """,
        ),
        SourcePatch(
            "system.agents.multiplexer",
            """
            state = ProviderState.of_encoded(kept)
            if state.identity:
                return state
            return ProviderState(agent.history.identity, state.turns, state.blob)
            """,
            """
            if not agent.history.exchanges:
                return ProviderState("")
            return ProviderState(loads(kept)["identity"])
            """,
        ),
    ),
)

slot_is_freed_before_its_record = Mutant(
    "a slot is given up before its record is saved",
    "runtime",
    (LeakedConversation,),
    (
        SourcePatch(
            "system.agents.multiplexer",
            "state = ProviderState(identity, agent.history.turn_count, blob).encoded()",
            """
            state = ProviderState(identity, agent.history.turn_count, blob).encoded()
            del self._open[agent.session_id]
            """,
        ),
        SourcePatch(
            "system.agents.multiplexer",
            """
            await agent.log.park()
            del self._open[agent.session_id]
            """,
            "await agent.log.park()",
        ),
    ),
)
