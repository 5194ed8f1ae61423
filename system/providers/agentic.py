"""An agentic service, which stores its conversations; they are resumed by name.

The name of a conversation is saved at its creation. The log is not replayed into it; only a
new conversation receives the history.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from system.ports import ConversationLost, Opening, Tools


class AgentService(Protocol):
    """The remote service. All methods may raise ``ProviderError``."""

    async def create(self, opening: Opening) -> str:
        """Return the name of a new conversation that has received ``opening.history``.

        A second call with one ``opening.key`` returns the same conversation.
        """
        ...

    async def resume(self, identity: str) -> None:
        """Make a conversation ready; ``ConversationLost`` if it is not known."""
        ...

    def send(self, identity: str, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        """Yield the answer in pieces; ``key`` is the turn's id."""
        ...

    async def conversations(self) -> Sequence[str]:
        """Return the names of all conversations that the service keeps for this runtime."""
        ...


class AgenticConversation:
    """One conversation at the service; implements ``system.ports.Conversation``."""

    def __init__(self, service: AgentService, identity: str) -> None:
        self._service = service
        self._identity = identity

    def identity(self) -> str:
        """Return the service's name for it."""
        return self._identity

    def send(self, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        """Yield the answer in pieces."""
        return self._service.send(self._identity, prompt, key, tools)

    async def suspend(self) -> bytes:
        """Return nothing: the service keeps all of it."""
        return b""

    async def stop(self) -> None:
        """Do nothing: the service keeps the conversation."""


class AgenticProvider:
    """Conversations at ``service``; implements ``system.ports.Provider``."""

    def __init__(self, service: AgentService) -> None:
        self._service = service

    async def create(self, opening: Opening) -> AgenticConversation:
        """Open a new conversation."""
        return AgenticConversation(self._service, await self._service.create(opening))

    async def restore(self, opening: Opening, identity: str, blob: bytes) -> AgenticConversation:
        """Resume the conversation ``identity``; raises ``ConversationLost`` if it is not known."""
        del blob
        if not identity:
            raise ConversationLost(f"no name of a conversation was kept: key={opening.key}")
        await self._service.resume(identity)
        return AgenticConversation(self._service, identity)

    async def identities(self) -> Sequence[str]:
        """Return the names of all conversations that the service keeps for this runtime, sorted."""
        return sorted(await self._service.conversations())
