"""A simulated agentic service: it keeps the conversations, over every crash of the machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from crash_tests.rig.answering import Brain, answer
from crash_tests.rig.provider_faults import ProviderFault
from crash_tests.rig.provider_ledger import Asked, ProviderLedger
from system.ports import ConversationLost, Exchange, Opening, ProviderError, Tools


class KeptConversation:
    """One conversation as the service remembers it."""

    __slots__ = ("history", "identity", "session")

    def __init__(self, identity: str, opening: Opening) -> None:
        self.identity = identity
        self.session = opening.key
        self.history = opening.history

    def remember(self, prompt: str, text: str) -> None:
        """Add what was said."""
        self.history = (*self.history, Exchange(prompt, text))


class SimulatedAgentService:
    """Answers with ``brain``; what is needed of it is ``system.providers.agentic.AgentService``."""

    def __init__(self, ledger: ProviderLedger, brain: Brain) -> None:
        self._ledger = ledger
        self._brain = brain
        self._kept: dict[str, KeptConversation] = {}
        self._created = 0

    async def create(self, opening: Opening) -> str:
        """Return the name of a conversation; the same one for the same ``opening.key``."""
        await asyncio.sleep(0)
        if self._ledger.faults.strike(ProviderFault.REFUSED):
            raise ProviderError("no conversation was created: too many requests")
        identity = self._of_session(opening.key)
        if identity is None:
            self._created += 1
            identity = f"conversation-{self._created}"
            self._kept[identity] = KeptConversation(identity, opening)
        await asyncio.sleep(0)
        return identity

    async def resume(self, identity: str) -> None:
        """Make a conversation ready; ``ConversationLost`` if it is not known."""
        await asyncio.sleep(0)
        if identity in self._kept and self._ledger.faults.strike(ProviderFault.FORGOTTEN):
            del self._kept[identity]
        if identity not in self._kept:
            raise ConversationLost(f"no such conversation: identity={identity!r}")

    async def send(self, identity: str, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        """Yield the answer in pieces; it is remembered when it exists."""
        if identity not in self._kept:
            raise ConversationLost(f"no such conversation: identity={identity!r}")
        kept = self._kept[identity]
        asked = Asked(kept.session, identity, key, prompt, kept.history)
        async for piece in answer(
            self._ledger, self._brain, asked, tools, lambda text: kept.remember(prompt, text)
        ):
            yield piece

    async def conversations(self) -> Sequence[str]:
        """Return the names of all conversations that are kept."""
        await asyncio.sleep(0)
        return list(self._kept)

    def history(self, identity: str) -> tuple[Exchange, ...]:
        """Return what a conversation remembers; for the harness."""
        return self._kept[identity].history

    def _of_session(self, session: str) -> str | None:
        for identity, kept in self._kept.items():
            if kept.session == session:
                return identity
        return None
