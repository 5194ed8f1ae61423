"""A provider that can do no harm: what takes too long, or raises, is a ``ProviderError``.

Providers are adapters to somebody else's service; a mistake in one must not end a task of the
runtime. Only ``send`` passes through as it is: a turn looks after that itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from system.ports import Clock, Conversation, Opening, Provider, ProviderError, Tools
from system.storage.codec import canonical

T = TypeVar("T")


class Patience:
    """Waits ``limit_ns`` nanoseconds for each call, and no longer."""

    def __init__(self, clock: Clock, limit_ns: int) -> None:
        self._clock = clock
        self._limit_ns = limit_ns

    async def wait_for(self, call: Coroutine[Any, Any, T], what: str) -> T:
        """Return what the call returns; ``ProviderError`` when it does not come to its end."""
        try:
            async with self._clock.timeout(self._limit_ns):
                return await call
        except ProviderError:
            raise
        except TimeoutError:
            raise ProviderError(f"{what} took more than {self._limit_ns / 1e9:.0f} s") from None
        except Exception as failure:
            raise ProviderError(f"{what} failed: {failure!r}") from failure


def bounded(
    providers: Mapping[str, Provider], clock: Clock, limit_ns: int
) -> dict[str, BoundedProvider]:
    """Return providers, by their names, for each call of which at most ``limit_ns`` is waited."""
    patience = Patience(clock, limit_ns)
    return {name: BoundedProvider(provider, patience) for name, provider in providers.items()}


class BoundedConversation:
    """Implements ``system.ports.Conversation`` over another one."""

    def __init__(self, inner: Conversation, patience: Patience) -> None:
        self._inner = inner
        self._patience = patience

    def identity(self) -> str:
        """Return the provider's name for it."""
        return self._inner.identity()

    def send(self, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        """Yield the answer in pieces."""
        return self._inner.send(prompt, key, tools)

    async def suspend(self) -> bytes:
        """Return the blob."""
        return await self._patience.wait_for(self._inner.suspend(), "suspending a conversation")

    async def stop(self) -> None:
        """Close it at this end."""
        await self._patience.wait_for(self._inner.stop(), "closing a conversation")


class BoundedProvider:
    """Implements ``system.ports.Provider`` over another one."""

    def __init__(self, inner: Provider, patience: Patience) -> None:
        self._inner = inner
        self._patience = patience

    async def create(self, opening: Opening) -> BoundedConversation:
        """Open a new conversation."""
        call = self._inner.create(opening)
        return self._bounded(await self._patience.wait_for(call, "creating a conversation"))

    async def restore(self, opening: Opening, identity: str, blob: bytes) -> BoundedConversation:
        """Take up a conversation again."""
        call = self._inner.restore(opening, identity, blob)
        return self._bounded(await self._patience.wait_for(call, "taking up a conversation"))

    async def identities(self) -> Sequence[str]:
        """Return the names of the conversations that the provider keeps."""
        return await self._patience.wait_for(self._inner.identities(), "listing conversations")

    def _bounded(self, conversation: Conversation) -> BoundedConversation:
        try:
            canonical(conversation.identity())
        except Exception as failure:
            raise ProviderError(f"a conversation has no identity: {failure!r}") from failure
        return BoundedConversation(conversation, self._patience)
