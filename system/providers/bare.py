"""A bare model has no memory: each request contains the conversation, whose only copy is the log.

An exchange is added to the conversation when its answer was read to the end. If that turn is not
committed, the conversation must be dropped and restored from the log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Protocol

from system.ports import Exchange, Opening, Tools


class Model(Protocol):
    """A model without a memory."""

    def answer(self, opening: Opening, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        """Yield the answer to ``prompt``, which comes after ``opening.history``.

        ``key`` is the turn's id. Raises ``ProviderError``.
        """
        ...


class BareConversation:
    """The exchanges so far; implements ``system.ports.Conversation``."""

    def __init__(self, model: Model, opening: Opening) -> None:
        self._model = model
        self._opening = opening

    def identity(self) -> str:
        """Return the empty text: the model knows no conversations."""
        return ""

    async def send(self, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        """Yield the answer in pieces; an incomplete answer is not added to the conversation."""
        pieces: list[str] = []
        async for piece in self._model.answer(self._opening, prompt, key, tools):
            pieces.append(piece)
            yield piece
        exchange = Exchange(prompt, "".join(pieces))
        self._opening = replace(self._opening, history=(*self._opening.history, exchange))

    @property
    def history(self) -> tuple[Exchange, ...]:
        """The exchanges so far."""
        return self._opening.history

    async def suspend(self) -> bytes:
        """Return nothing: a second copy of the log could only differ from it (planted bug R15)."""
        return b""

    async def stop(self) -> None:
        """Do nothing: nothing is held open."""


class BareProvider:
    """Conversations with ``model``; implements ``system.ports.Provider``."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def create(self, opening: Opening) -> BareConversation:
        """Open a conversation that contains ``opening.history``."""
        return BareConversation(self._model, opening)

    async def restore(self, opening: Opening, identity: str, blob: bytes) -> BareConversation:
        """Open it again, from ``opening`` and nothing else."""
        del identity, blob
        return BareConversation(self._model, opening)

    async def identities(self) -> Sequence[str]:
        """Return nothing: no conversation is kept anywhere."""
        return ()
