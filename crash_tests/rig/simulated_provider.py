"""Simulated providers: a bare model without memory, and a service that keeps conversations.

Both answer with a ``Brain``, in pieces between which other tasks run, and have the faults that are
armed in the provider ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, TypeAlias, cast

from crash_tests.rig.provider_ledger import (
    REQUEST_FAULTS,
    Answer,
    ProviderFault,
    ProviderLedger,
    Request,
)
from system.ports import (
    ConversationLost,
    Exchange,
    JsonObject,
    Opening,
    ProviderError,
    Tools,
)

Brain: TypeAlias = Callable[[str, Tools], str]
"""Answers a prompt, and may call tools before it returns."""

PIECES: Final = 3
SLOW_SECONDS: Final = 60

_SURROGATE: Final = "\x00 \ud800 half an answer"
_NONSENSE: Final[Sequence[tuple[str, Any]]] = (
    ("launch_rockets", {}),
    ("send_message", {"to": "\ud800", "payload": float("nan")}),
    ("spawn_agent", {"name": b"bytes", "instructions": object()}),
    ("complete", ["not", "an", "object"]),
    ("", None),
)


class SimulatedModel:
    """A model without memory; implements ``system.providers.bare.Model``."""

    def __init__(self, ledger: ProviderLedger, brain: Brain) -> None:
        self._ledger = ledger
        self._brain = brain

    def answer(self, opening: Opening, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        """Yield the answer in pieces; raises ``ProviderError``."""
        request = Request(opening.key, "", key, prompt, opening.history)
        return _answer(self._ledger, self._brain, request, tools, lambda _: None)


class _Conversation:
    """One conversation as the service stores it."""

    __slots__ = ("history", "session")

    def __init__(self, opening: Opening) -> None:
        self.session = opening.key
        self.history = opening.history

    def remember(self, prompt: str, text: str) -> None:
        self.history = (*self.history, Exchange(prompt, text))


class SimulatedAgentService:
    """A service that keeps conversations across all crashes of the machine.

    Implements ``system.providers.agentic.AgentService``.
    """

    def __init__(self, ledger: ProviderLedger, brain: Brain) -> None:
        self._ledger = ledger
        self._brain = brain
        self._conversations: dict[str, _Conversation] = {}
        self._created = 0

    async def create(self, opening: Opening) -> str:
        """Return the name of a conversation; the same one for the same ``opening.key``."""
        await asyncio.sleep(0)
        if self._ledger.faults.fire(ProviderFault.REFUSED):
            raise ProviderError("no conversation was created: too many requests")
        identity = self._of_session(opening.key)
        if identity is None:
            self._created += 1
            identity = f"conversation-{self._created}"
            self._conversations[identity] = _Conversation(opening)
        await asyncio.sleep(0)
        return identity

    async def resume(self, identity: str) -> None:
        """Prepare a conversation; ``ConversationLost`` if there is none of this name."""
        await asyncio.sleep(0)
        if identity in self._conversations and self._ledger.faults.fire(
            ProviderFault.CONVERSATION_LOST
        ):
            del self._conversations[identity]
        self._require(identity)

    async def send(self, identity: str, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        """Yield the answer in pieces, and store it as soon as it is complete."""
        conversation = self._require(identity)
        request = Request(conversation.session, identity, key, prompt, conversation.history)
        async for piece in _answer(
            self._ledger, self._brain, request, tools,
            lambda text: conversation.remember(prompt, text),
        ):  # fmt: skip
            yield piece

    async def conversations(self) -> Sequence[str]:
        """Return the names of all conversations."""
        await asyncio.sleep(0)
        return list(self._conversations)

    def history(self, identity: str) -> tuple[Exchange, ...]:
        """Return the exchanges of a conversation, for the checks of a test."""
        return self._conversations[identity].history

    def _require(self, identity: str) -> _Conversation:
        if identity not in self._conversations:
            raise ConversationLost(f"no such conversation: identity={identity!r}")
        return self._conversations[identity]

    def _of_session(self, session: str) -> str | None:
        for identity, conversation in self._conversations.items():
            if conversation.session == session:
                return identity
        return None


class _BreakingTools:
    """Tools that allow one call; the next one raises ``ProviderError``."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._called = False

    def call(self, call_id: str, name: str, arguments: JsonObject) -> JsonObject:
        if self._called:
            raise ProviderError("the stream broke off between two calls of tools")
        self._called = True
        return self._tools.call(call_id, name, arguments)

    async def perform(self, call_id: str, arguments: JsonObject) -> JsonObject:
        return await self._tools.perform(call_id, arguments)


async def _answer(
    ledger: ProviderLedger,
    brain: Brain,
    request: Request,
    tools: Tools,
    remember: Callable[[str], object],
) -> AsyncIterator[str]:
    """Enter a request in the ledger and yield its answer; ``remember`` gets the whole text.

    Raises ``ProviderError``.
    """
    ledger.requests.append(request)
    fault = ledger.faults.fire(*REQUEST_FAULTS)
    await asyncio.sleep(0)
    if fault is ProviderFault.TIMEOUT:
        await asyncio.Event().wait()
    if fault is ProviderFault.GARBAGE:
        for position, (name, arguments) in enumerate(_NONSENSE):
            tools.call(f"garbage.{position}", name, arguments)
        odd = ledger.faults.fired[fault] % 2
        yield _SURROGATE if odd else cast("str", b"\xff\x00")
        return
    text = brain(request.prompt, _BreakingTools(tools) if fault is ProviderFault.BROKEN else tools)
    if fault is ProviderFault.DUPLICATE:
        await asyncio.sleep(0)
        text = brain(request.prompt, tools)
    remember(text)
    ledger.answers.append(Answer(request.session, request.identity, request.key, text))
    if fault is ProviderFault.LOST:
        raise ProviderError("the connection was reset before the answer arrived")
    for piece in _pieces(text):
        await asyncio.sleep(SLOW_SECONDS if fault is ProviderFault.SLOW else 0)
        yield piece
        if fault is ProviderFault.BROKEN:
            raise ProviderError("the stream broke off after the first piece")


def _pieces(text: str) -> list[str]:
    """Return a text in pieces, the last of them empty, as streams often end."""
    size = len(text) // PIECES + 1
    return [*(text[start : start + size] for start in range(0, len(text), size)), ""]
