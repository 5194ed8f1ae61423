"""Conversations that are not those of the log: holes R15, R17 and R20."""

from __future__ import annotations

import json
from contextlib import suppress
from json import JSONDecodeError

from crash_tests.mutants.runtime_parts import RuntimeParts
from oracles.runtime.violations import ConversationMismatch, LeakedConversation
from oracles.violation import Starved
from system.agents.agent import Agent
from system.agents.multiplexer import Pool, Slot, opening_of
from system.agents.provider_state import ProviderState
from system.ports import Conversation, Opening, ProviderError
from system.sessions.session import SessionState


class TrustingPool(Pool):
    """R15: the blob of the last suspension is believed, however old it is."""

    async def _restored(self, opening: Opening, state: ProviderState) -> Conversation | None:
        return await super()._restored(opening, state._replace(turns=len(opening.history)))


class LateIdentities(Pool):
    """R17: the provider's own name for a conversation is saved when it is suspended, not before."""

    async def _opened(self, agent: Agent) -> Conversation:
        opening = opening_of(agent)
        kept = agent.log.record.provider_state_blob if agent.log.record is not None else b""
        if opening.history:
            identity = json.loads(kept)["identity"]
            conversation = await self._provider.restore(opening, identity, b"")
        else:
            conversation = await self._provider.create(opening)
        await agent.log.save(SessionState.ACTIVE, kept)
        return conversation


class HastyPool(Pool):
    """R20: a slot is given up before the record says so; if it never does, nobody knows."""

    async def _evict(self, slot: Slot) -> None:
        agent, conversation = slot.agent, slot.conversation
        del self._open[agent.session_id]
        blob = b""
        with suppress(ProviderError):
            blob = await conversation.suspend()
        state = ProviderState(conversation.identity(), len(agent.history.turns), blob)
        await agent.log.save(SessionState.SUSPENDED, state.encoded())
        with suppress(ProviderError):
            await conversation.stop()


stale_blob_is_trusted = RuntimeParts(pool=TrustingPool).mutant(
    "a stale provider blob takes the conversation back", ConversationMismatch
)
identity_is_saved_late = RuntimeParts(pool=LateIdentities).mutant(
    "a conversation's name is saved only when it is suspended",
    JSONDecodeError,
    Starved,
    ConversationMismatch,
)
slot_goes_before_its_record = RuntimeParts(pool=HastyPool).mutant(
    "a slot is given up before its record is saved", LeakedConversation
)
