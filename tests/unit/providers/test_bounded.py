"""Calls of a provider end with ``ProviderError`` after a bounded time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

import pytest

from crash_tests.rig.host import simulated_host
from sim.choices import PlainChoices
from sim.world import World
from system.ports import Conversation, Opening, Provider, ProviderError, Tools
from system.providers.bounded import bounded

OPENING = Opening("key", "model", "")
MINUTE_NS = 60_000_000_000


class HangingConversation:
    """A conversation that never ends a call."""

    def identity(self) -> str:
        return "forgetful"

    async def send(self, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        yield prompt

    async def suspend(self) -> bytes:
        await asyncio.get_running_loop().create_future()
        return b""

    async def stop(self) -> None:
        await asyncio.get_running_loop().create_future()


class Hanging:
    """A provider that opens one conversation, and hangs in all other calls."""

    async def create(self, opening: Opening) -> Conversation:
        if opening.model == "hang":
            await asyncio.get_running_loop().create_future()
        return HangingConversation()

    async def restore(self, opening: Opening, identity: str, blob: bytes) -> Conversation:
        await asyncio.get_running_loop().create_future()
        return HangingConversation()

    async def identities(self) -> Sequence[str]:
        await asyncio.get_running_loop().create_future()
        return ()


async def _create(provider: Provider) -> object:
    return await provider.create(Opening("key", "hang", ""))


async def _restore(provider: Provider) -> object:
    return await provider.restore(OPENING, "forgetful", b"")


async def _identities(provider: Provider) -> object:
    return await provider.identities()


async def _suspend(provider: Provider) -> object:
    return await (await provider.create(OPENING)).suspend()


async def _stop(provider: Provider) -> None:
    await (await provider.create(OPENING)).stop()


@pytest.mark.parametrize("call", [_create, _restore, _identities, _suspend, _stop])
def test_a_call_that_hangs_ends_with_an_error(
    call: Callable[[Provider], Coroutine[Any, Any, object]],
) -> None:
    world = World(simulated_host, PlainChoices())
    host = world.boot()
    provider = bounded({"slow": Hanging()}, host.clock, MINUTE_NS)["slow"]

    with pytest.raises(ProviderError, match="took more than 60 s"):
        world.loop.run_until_complete(call(provider))

    assert world.clock.now_ns >= MINUTE_NS
    world.kill()


def test_an_answer_passes_through_piece_by_piece() -> None:
    world = World(simulated_host, PlainChoices())
    host = world.boot()
    provider = bounded({"slow": Hanging()}, host.clock, MINUTE_NS)["slow"]

    async def pieces() -> list[str]:
        conversation = await provider.create(OPENING)
        assert conversation.identity() == "forgetful"
        tools: Any = None
        return [piece async for piece in conversation.send("hello", "turn", tools)]

    assert world.loop.run_until_complete(pieces()) == ["hello"]
    world.kill()
