"""What is outside of the runtime in its machine: three kinds of provider, watched.

Everything that a provider is asked, calls and answers is told to the shadow, which knows
from there what a turn may commit. The providers outlive every crash.
"""

from __future__ import annotations

import json
from asyncio import Event
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from crash_tests.rig.agent_service import SimulatedAgentService
from crash_tests.rig.provider_faults import ProviderFault
from crash_tests.rig.provider_ledger import ProviderLedger
from crash_tests.rig.simulated_provider import SimulatedModel
from crash_tests.targets.script import TOOLS, ScriptedAgent
from oracles.runtime.shadow_turns import ShadowTurns
from oracles.runtime.violations import LeakedConversation
from oracles.violation import Violation
from system.ports import (
    Conversation,
    Exchange,
    JsonObject,
    Opening,
    Provider,
    Tools,
)
from system.providers.agentic import AgenticProvider
from system.providers.bare import BareConversation, BareProvider, Model
from system.runtime import Options

PROVIDER_FAULTS: Final = tuple(fault.value for fault in ProviderFault)
_SLOTS: Final = Options().slots


class WatchedProviders:
    """``open`` are the conversations that it has not stopped, with the names of their providers.
    ``now_ns`` tells the wall clock, since 1970, without looking at it; without it, no reminder's
    time is judged.
    """

    names: Final = ("bare", "caching", "agentic", "caching")

    def __init__(self, turns: ShadowTurns, now_ns: Callable[[], int] | None = None) -> None:
        self.ledger = ProviderLedger()
        self._turns = turns
        self._now_ns = now_ns
        self._violation: Violation | None = None
        self._slots = _SLOTS
        self.open: dict[WatchedConversation, str] = {}
        self._asked = self._answered = 0
        agent = ScriptedAgent()
        model = SimulatedModel(self.ledger, agent)
        self._watched: Mapping[str, Provider] = {
            "bare": BareProvider(model),
            "agentic": AgenticProvider(SimulatedAgentService(self.ledger, agent)),
            "caching": CachingProvider(model),
        }

    @property
    def by_name(self) -> Mapping[str, Provider]:
        """What the runtime is opened with.

        They are not kept, because they know this object: a circle would wait for the collector.
        """
        return {name: WatchedProvider(name, inner, self) for name, inner in self._watched.items()}

    @property
    def has_armed(self) -> bool:
        """Whether a fault of a provider is still to strike."""
        return bool(self.ledger.faults.armed)

    @property
    def has_failed(self) -> bool:
        """Whether a fault of a provider has struck at any time."""
        return any(self.ledger.faults.fired.values())

    def inject(self, fault: str, count: int) -> None:
        """Let a fault strike the next ``count`` requests that it can strike."""
        self.ledger.faults.arm(ProviderFault(fault), count)

    def clear(self) -> None:
        """Lift all faults."""
        self.ledger.faults.lift()

    async def stall(self) -> None:
        """Wait for ever, when that fault is on."""
        if self.ledger.faults.strike(ProviderFault.STALLED):
            await Event().wait()

    def boot(self, slots: int) -> None:
        """Begin a lifetime: no conversation is open yet, and each provider has so many slots."""
        self.open.clear()
        self._slots = slots

    def register(self, conversation: WatchedConversation, provider: str) -> None:
        """Note that a conversation is open: one too many is one that was forgotten (S-25, R20)."""
        self.open[conversation] = provider
        there = list(self.open.values()).count(provider)
        if there > self._slots:
            self._violation = LeakedConversation(
                "more conversations are open than there are slots", provider=provider, open=there
            )

    def check(self) -> None:
        """Raise what a provider has met, which its caller may have taken for a failure of it."""
        if self._violation is not None:
            raise self._violation

    def report(self) -> None:
        """Tell the shadow what the ledger has that it was not told yet."""
        ledger = self.ledger
        for asked in ledger.asked[self._asked :]:
            # A service keeps its own history, which may contain lost turns.
            history = [(said.prompt, said.response) for said in asked.history]
            self._turns.record_request(
                asked.key, asked.prompt, history, asked.session, superset=bool(asked.identity)
            )
        for answered in ledger.answered[self._answered :]:
            self._turns.record_answer(answered.key, answered.text)
        self._asked, self._answered = len(ledger.asked), len(ledger.answered)

    def report_call(
        self, key: str, call_id: str, name: str, arguments: JsonObject, result: JsonObject
    ) -> None:
        """Tell the shadow of a call of a tool, after what was asked before it."""
        try:
            self.report()
            at_ns = self._now_ns() if self._now_ns is not None else None
            self._turns.record_call(key, call_id, name, arguments, result, at_ns)
        except Violation as violation:
            self._violation = violation
            raise


class WatchedTools:
    """Tools of one turn whose calls are told to the shadow."""

    def __init__(self, tools: Tools, key: str, watcher: WatchedProviders) -> None:
        self._tools = tools
        self._key = key
        self._watcher = watcher

    def call(self, call_id: str, name: str, arguments: JsonObject) -> JsonObject:
        """Pass the call on."""
        result = self._tools.call(call_id, name, arguments)
        self._watcher.report_call(self._key, call_id, name, arguments, result)
        return result


class WatchedConversation:
    """A conversation whose turns are told to the shadow."""

    def __init__(self, provider: str, inner: Conversation, watcher: WatchedProviders) -> None:
        self._inner = inner
        self._watcher = watcher
        self.identity = inner.identity
        watcher.register(self, provider)

    async def send(self, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        """Pass the answer on, piece by piece."""
        async for piece in self._inner.send(prompt, key, WatchedTools(tools, key, self._watcher)):
            # What is committed was told before.
            self._watcher.report()
            yield piece

    async def suspend(self) -> bytes:
        """Pass the call on."""
        await self._watcher.stall()
        return await self._inner.suspend()

    async def stop(self) -> None:
        """Stop it; it counts as closed, whatever comes of that."""
        self._watcher.open.pop(self, None)
        await self._watcher.stall()
        await self._inner.stop()


class WatchedProvider:
    """A provider whose turns are told to the shadow."""

    def __init__(self, name: str, inner: Provider, watcher: WatchedProviders) -> None:
        self._name = name
        self._inner = inner
        self._watcher = watcher

    async def create(self, opening: Opening) -> WatchedConversation:
        """Open a new conversation."""
        await self._watcher.stall()
        conversation = await self._inner.create(opening)
        return WatchedConversation(self._name, conversation, self._watcher)

    async def restore(self, opening: Opening, identity: str, blob: bytes) -> WatchedConversation:
        """Take up a conversation again."""
        await self._watcher.stall()
        conversation = await self._inner.restore(opening, identity, blob)
        return WatchedConversation(self._name, conversation, self._watcher)

    async def identities(self) -> Sequence[str]:
        """Pass the call on."""
        await self._watcher.stall()
        return await self._inner.identities()


class CachingConversation(BareConversation):
    """A conversation that is written down when it is suspended."""

    async def suspend(self) -> bytes:
        """Return all that was said, for ``restore`` to trust (hole R15 lies in wait here)."""
        return json.dumps([(said.prompt, said.response) for said in self.history]).encode()


class CachingProvider(BareProvider):
    """A provider that prefers its blob to the log, as the port allows."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._cached = model

    async def create(self, opening: Opening) -> CachingConversation:
        """Open a new conversation."""
        return CachingConversation(self._cached, opening)

    async def restore(self, opening: Opening, identity: str, blob: bytes) -> CachingConversation:
        """Take up what the blob says, or the log where there is no blob."""
        del identity
        if blob:
            said = tuple(Exchange(*pair) for pair in json.loads(blob))
            opening = replace(opening, history=said)
        return CachingConversation(self._cached, opening)

    async def identities(self) -> Sequence[str]:
        """Return nothing: no conversation is kept anywhere."""
        return ()


FEATURES: Final = MappingProxyType(
    {
        "tool": len(TOOLS),
        "provider": len(WatchedProviders.names),
        "provider fault": len(PROVIDER_FAULTS),
    }
)
"""What a run of the runtime may leave out: labels, and how many answers each has."""
