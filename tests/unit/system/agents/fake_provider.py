"""A provider for unit tests: it performs scripts, records requests, and fails on demand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from system.ports import ConversationLost, Json, JsonObject, Opening, ProviderError, Tools

Hook = Callable[[], Awaitable[object]]


def script(*calls: tuple[str, JsonObject], say: str = "done") -> Json:
    """A payload that makes the agent call these tools and say this."""
    return {"do": [[tool, arguments] for tool, arguments in calls], "say": say}


class FakeProvider:
    """``asked`` are the calls in their order; ``results`` what the tools have answered.

    ``hooks`` are awaited before a call of that name answers. ``failures`` are raised, the
    first of each list first, by the calls of that name.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.openings: list[Opening] = []
        self.results: list[JsonObject] = []
        self.prompts: list[str] = []
        self.blobs: list[bytes] = []
        self.kept: list[str] = []
        self.hooks: dict[str, Hook] = {}
        self.failures: dict[str, list[BaseException]] = {}
        self.pieces: list[Any] = []
        self.tools: Tools | None = None
        self._creations = 0

    def fail(self, call: str, times: int = 1, error: BaseException | None = None) -> None:
        self.failures[call] = [error or ProviderError(f"{call} failed")] * times

    async def enter(self, call: str, who: str) -> None:
        self.asked.append(f"{call} {who}")
        if call in self.hooks:
            await self.hooks[call]()
        if self.failures.get(call):
            raise self.failures[call].pop(0)

    async def create(self, opening: Opening) -> FakeConversation:
        self._creations += 1
        identity = f"c{self._creations}"
        await self.enter("create", identity)
        self.openings.append(opening)
        self.kept.append(identity)
        return FakeConversation(self, identity)

    async def restore(self, opening: Opening, identity: str, blob: bytes) -> FakeConversation:
        await self.enter("restore", identity)
        if identity not in self.kept:
            raise ConversationLost(identity)
        self.openings.append(opening)
        self.blobs.append(blob)
        return FakeConversation(self, identity)

    async def identities(self) -> Sequence[str]:
        await self.enter("identities", "")
        return sorted(self.kept)


class FakeConversation:
    def __init__(self, provider: FakeProvider, identity: str) -> None:
        self._provider = provider
        self._identity = identity

    def identity(self) -> str:
        return self._identity

    async def send(self, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        provider = self._provider
        provider.tools = tools
        provider.prompts.append(prompt)
        await provider.enter("send", self._identity)
        for message in json.loads(prompt):
            payload = message["payload"]
            if isinstance(payload, str) and payload.startswith("{"):
                payload = json.loads(payload)
            if not (isinstance(payload, dict) and "do" in payload):
                continue
            for number, (tool, arguments) in enumerate(payload["do"]):
                provider.results.append(
                    tools.call(f"{message['message_id']} {number}", tool, arguments)
                )
            yield str(payload["say"])
        for piece in provider.pieces:
            yield piece
        await provider.enter("sent", self._identity)

    async def suspend(self) -> bytes:
        await self._provider.enter("suspend", self._identity)
        return b"blob of " + self._identity.encode()

    async def stop(self) -> None:
        await self._provider.enter("stop", self._identity)
