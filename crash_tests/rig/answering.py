"""How a simulated provider answers a request: in pieces, with steps of others between, or badly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, TypeAlias, cast

from crash_tests.rig.provider_faults import IN_A_REQUEST, ProviderFault
from crash_tests.rig.provider_ledger import Answered, Asked, ProviderLedger
from system.ports import JsonObject, ProviderError, Tools

Brain: TypeAlias = Callable[[str, Tools], str]
"""What answers a prompt, and calls tools meanwhile."""

PIECES: Final = 3
SLOW_SECONDS: Final = 60

_SURROGATE: Final = "\x00 \ud800 half an answer"


class BreaksOff:
    """Tools that let one call through; the stream breaks off at the next."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._called = False

    def call(self, call_id: str, name: str, arguments: JsonObject) -> JsonObject:
        """Pass the first call on."""
        if self._called:
            raise ProviderError("the stream broke off between two calls of tools")
        self._called = True
        return self._tools.call(call_id, name, arguments)


async def answer(
    ledger: ProviderLedger,
    brain: Brain,
    asked: Asked,
    tools: Tools,
    remember: Callable[[str], object],
) -> AsyncIterator[str]:
    """Yield the answer to a request, after it was entered in the ledger.

    ``remember`` is told the answer at the moment at which it exists. Raises ``ProviderError``.
    """
    ledger.asked.append(asked)
    fault = ledger.faults.strike(*IN_A_REQUEST)
    await asyncio.sleep(0)
    if fault is ProviderFault.TIMEOUT:
        await asyncio.Event().wait()
    if fault is ProviderFault.GARBAGE:
        _call_nonsense(tools)
        odd = ledger.faults.fired[fault] % 2
        yield _SURROGATE if odd else cast("str", b"\xff\x00")
        return
    text = brain(asked.prompt, BreaksOff(tools) if fault is ProviderFault.BROKEN else tools)
    if fault is ProviderFault.DUPLICATE:
        await asyncio.sleep(0)
        text = brain(asked.prompt, tools)
    remember(text)
    ledger.answered.append(Answered(asked.session, asked.identity, asked.key, text))
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


def _call_nonsense(tools: Tools) -> None:
    nonsense: list[tuple[str, Any]] = [
        ("launch_rockets", {}),
        ("send_message", {"to": "\ud800", "payload": float("nan")}),
        ("spawn_agent", {"name": b"bytes", "instructions": object()}),
        ("complete", ["not", "an", "object"]),
        ("", None),
    ]
    for position, (name, arguments) in enumerate(nonsense):
        tools.call(f"garbage.{position}", name, arguments)
