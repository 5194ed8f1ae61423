"""Bounds on a provider: a call that takes too long, or raises, is a ``ProviderError``.

Providers are adapters to external services; a mistake in one must not end a task of the
runtime. Only ``send`` is passed on unchanged, because a turn bounds it itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from system.foreign import passes, shown
from system.ports import Clock, Conversation, Opening, Provider, ProviderError

T = TypeVar("T")


class Patience:
    """Bounds each call by ``limit_ns`` nanoseconds."""

    def __init__(self, clock: Clock, limit_ns: int) -> None:
        self._clock = clock
        self._limit_ns = limit_ns

    async def wait_for(self, call: Callable[[], Coroutine[Any, Any, T]], what: str) -> T:
        """Return the result of the call; ``ProviderError`` if it does not end in time."""
        try:
            async with self._clock.timeout(self._limit_ns):
                return await call()
        except ProviderError:
            raise
        except TimeoutError:
            raise ProviderError(f"{what} took more than {self._limit_ns / 1e9:.0f} s") from None
        except BaseException as failure:
            if passes(failure):
                raise
            raise ProviderError(f"{what} failed: {shown(failure)}") from failure


def bounded(
    providers: Mapping[str, Provider], clock: Clock, limit_ns: int
) -> dict[str, BoundedProvider]:
    """Return the providers by name, with each call bounded by ``limit_ns`` nanoseconds."""
    patience = Patience(clock, limit_ns)
    return {name: BoundedProvider(provider, patience) for name, provider in providers.items()}


class BoundedConversation:
    """Implements ``system.ports.Conversation`` over another one."""

    def __init__(self, inner: Conversation, patience: Patience) -> None:
        self._inner = inner
        self._patience = patience
        self.send = inner.send

    def identity(self) -> str:
        """Return the provider's name for it."""
        try:
            identity: object = self._inner.identity()
            if isinstance(identity, str):
                # A lone surrogate, which no log can keep, raises.
                identity.encode()
        except BaseException as failure:
            if passes(failure):
                raise
            raise ProviderError(f"a conversation has no identity: {shown(failure)}") from failure
        if type(identity) is not str:
            raise ProviderError(f"the identity of a conversation is not a text: {shown(identity)}")
        return identity

    async def suspend(self) -> bytes:
        """Return the blob."""
        blob: object = await self._patience.wait_for(
            self._inner.suspend, "suspending a conversation"
        )
        if not isinstance(blob, bytes):
            raise ProviderError(f"the blob of a suspended conversation is not bytes: {shown(blob)}")
        return blob

    async def stop(self) -> None:
        """Close it at this end."""
        await self._patience.wait_for(self._inner.stop, "closing a conversation")


class BoundedProvider:
    """Implements ``system.ports.Provider`` over another one."""

    def __init__(self, inner: Provider, patience: Patience) -> None:
        self._inner = inner
        self._patience = patience

    async def create(self, opening: Opening) -> BoundedConversation:
        """Open a new conversation."""
        return await self._patience.wait_for(
            lambda: self._bounded(self._inner.create(opening)), "creating a conversation"
        )

    async def restore(self, opening: Opening, identity: str, blob: bytes) -> BoundedConversation:
        """Restore a conversation."""
        return await self._patience.wait_for(
            lambda: self._bounded(self._inner.restore(opening, identity, blob)),
            "restoring a conversation",
        )

    async def identities(self) -> Sequence[str]:
        """Return the names of the conversations that the provider keeps."""
        return await self._patience.wait_for(self._identities, "listing conversations")

    async def _identities(self) -> Sequence[str]:
        kept: object = await self._inner.identities()
        # Testing for a list first avoids the slow test of an abstract class.
        if not isinstance(kept, (list, Sequence)) or not all(isinstance(n, str) for n in kept):
            raise ProviderError(f"the names of conversations are not texts: {shown(kept)}")
        return kept

    async def _bounded(self, opening: Awaitable[Conversation]) -> BoundedConversation:
        bounded = BoundedConversation(await opening, self._patience)
        bounded.identity()
        return bounded
