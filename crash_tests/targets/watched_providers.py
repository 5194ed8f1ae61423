"""The providers of the runtime target, whose requests, tool calls and answers are recorded.

There are three: a bare model, a model with a cache, and an agentic service. They survive every
crash. The shadow learns from their records which effects a turn may commit.
"""

from __future__ import annotations

import json
from asyncio import Event
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from crash_tests.rig.provider_ledger import ProviderFault, ProviderLedger
from crash_tests.rig.simulated_provider import SimulatedAgentService, SimulatedModel
from crash_tests.targets.script import TOOLS, ScriptedAgent
from oracles.runtime.shadow_turns import ShadowTurns
from oracles.runtime.violations import LeakedConversation
from oracles.violation import Violation
from system.ports import Conversation, Exchange, JsonObject, Opening, Provider, Tools
from system.providers.agentic import AgenticProvider
from system.providers.bare import BareConversation, BareProvider, Model
from system.runtime import Options

PROVIDER_FAULTS: Final = tuple(fault.value for fault in ProviderFault)
PROVIDER_NAMES: Final = ("bare", "caching", "agentic", "caching")
_SLOTS: Final = Options().slots

FEATURES: Final = MappingProxyType(
    {
        "tool": len(TOOLS),
        "provider": len(PROVIDER_NAMES),
        "provider fault": len(PROVIDER_FAULTS),
    }
)
"""The choices whose answers a run of the runtime may restrict, with the number of answers."""


class WatchedProviders:
    """The providers of all lifetimes of one run, and the checks of their use.

    Records go to ``turns``. ``open`` maps each conversation that was not stopped to the name
    of its provider. ``now_ns`` returns the wall clock's time, in nanoseconds since 1970, without
    a call on the clock, or None; without it, the times of reminders are not checked.
    """

    def __init__(self, turns: ShadowTurns, now_ns: Callable[[], int | None] | None = None) -> None:
        self.ledger = ProviderLedger()
        self.open: dict[WatchedConversation, str] = {}
        self._turns = turns
        self._now_ns = now_ns
        self._violation: Violation | None = None
        self._slots = _SLOTS
        self._recorded_requests = self._recorded_answers = 0
        agent = ScriptedAgent()
        model = SimulatedModel(self.ledger, agent)
        self._unwatched: Mapping[str, Provider] = {
            "bare": BareProvider(model),
            "agentic": AgenticProvider(SimulatedAgentService(self.ledger, agent)),
            "caching": CachingProvider(model),
        }

    @property
    def by_name(self) -> Mapping[str, Provider]:
        """The providers with which a runtime is opened.

        They refer to this object, which does not store them: a cycle would need the garbage
        collector.
        """
        return {
            name: WatchedProvider(name, provider, self)
            for name, provider in self._unwatched.items()
        }

    @property
    def has_armed(self) -> bool:
        """Whether a fault is armed."""
        return bool(self.ledger.faults.armed)

    @property
    def has_failed(self) -> bool:
        """Whether any request has met a fault."""
        return any(self.ledger.faults.fired.values())

    def inject(self, fault: str, count: int) -> None:
        """Arm a fault, by its value, for the next ``count`` requests that can meet it."""
        self.ledger.faults.arm(ProviderFault(fault), count)

    def clear(self) -> None:
        """Disarm all faults."""
        self.ledger.faults.clear()

    async def stall(self) -> None:
        """Never return, if that fault is armed."""
        if self.ledger.faults.fire(ProviderFault.STALLED):
            await Event().wait()

    def boot(self, slots: int) -> None:
        """Begin a lifetime: no conversation is open, and each provider has ``slots`` slots."""
        self.open.clear()
        self._slots = slots

    def add(self, conversation: WatchedConversation, provider: str) -> None:
        """Count a conversation as open; more open conversations than slots are a violation."""
        self.open[conversation] = provider
        number = list(self.open.values()).count(provider)
        if number > self._slots:
            self._violation = LeakedConversation(
                "more conversations are open than there are slots", provider=provider, open=number
            )

    def check(self) -> None:
        """Raise the violation that a provider has raised inside the runtime, if any."""
        if self._violation is not None:
            raise self._violation

    def record(self) -> None:
        """Pass the new entries of the ledger on to the shadow."""
        ledger = self.ledger
        for request in ledger.requests[self._recorded_requests :]:
            # A service keeps its own history, which may contain lost turns.
            history = [(exchange.prompt, exchange.response) for exchange in request.history]
            self._turns.record_request(
                request.key, request.prompt, history, request.session,
                superset=bool(request.identity),
            )  # fmt: skip
        for answer in ledger.answers[self._recorded_answers :]:
            self._turns.record_answer(answer.key, answer.text)
        self._recorded_requests = len(ledger.requests)
        self._recorded_answers = len(ledger.answers)

    def record_call(
        self, key: str, call_id: str, name: str, arguments: JsonObject, result: JsonObject
    ) -> None:
        """Pass a tool call on to the shadow, after the requests before it."""
        try:
            self.record()
            at_ns = self._now_ns() if self._now_ns is not None else None
            self._turns.record_call(key, call_id, name, arguments, result, at_ns)
        except Violation as violation:
            self._violation = violation
            raise


class WatchedTools:
    """Tools of one turn whose calls are recorded."""

    def __init__(self, tools: Tools, key: str, watcher: WatchedProviders) -> None:
        self._tools = tools
        self._key = key
        self._watcher = watcher

    def call(self, call_id: str, name: str, arguments: JsonObject) -> JsonObject:
        """Make the call and record it."""
        result = self._tools.call(call_id, name, arguments)
        self._watcher.record_call(self._key, call_id, name, arguments, result)
        return result

    async def perform(self, call_id: str, arguments: JsonObject) -> JsonObject:
        """Make the call and record it."""
        result = await self._tools.perform(call_id, arguments)
        self._watcher.record_call(self._key, call_id, "perform", arguments, result)
        return result


class WatchedConversation:
    """A conversation whose turns are recorded."""

    def __init__(
        self, provider: str, conversation: Conversation, watcher: WatchedProviders
    ) -> None:
        self._conversation = conversation
        self._watcher = watcher
        self.identity = conversation.identity
        watcher.add(self, provider)

    async def send(self, prompt: str, key: str, tools: Tools) -> AsyncIterator[str]:
        """Pass the answer on, piece by piece."""
        watched = WatchedTools(tools, key, self._watcher)
        async for piece in self._conversation.send(prompt, key, watched):
            # The turn may be committed as soon as the piece is passed on.
            self._watcher.record()
            yield piece

    async def suspend(self) -> bytes:
        """Suspend the conversation, unless the call stalls."""
        await self._watcher.stall()
        return await self._conversation.suspend()

    async def stop(self) -> None:
        """Stop the conversation; it counts as stopped even if the call stalls or fails."""
        self._watcher.open.pop(self, None)
        await self._watcher.stall()
        await self._conversation.stop()


class WatchedProvider:
    """A provider whose conversations are watched."""

    def __init__(self, name: str, provider: Provider, watcher: WatchedProviders) -> None:
        self._name = name
        self._provider = provider
        self._watcher = watcher

    async def create(self, opening: Opening) -> WatchedConversation:
        """Open a new conversation, unless the call stalls."""
        await self._watcher.stall()
        conversation = await self._provider.create(opening)
        return WatchedConversation(self._name, conversation, self._watcher)

    async def restore(self, opening: Opening, identity: str, blob: bytes) -> WatchedConversation:
        """Resume a conversation, unless the call stalls."""
        await self._watcher.stall()
        conversation = await self._provider.restore(opening, identity, blob)
        return WatchedConversation(self._name, conversation, self._watcher)

    async def identities(self) -> Sequence[str]:
        """Return the names of the open conversations, unless the call stalls."""
        await self._watcher.stall()
        return await self._provider.identities()


class CachingConversation(BareConversation):
    """A conversation whose blob contains its whole history."""

    async def suspend(self) -> bytes:
        """Return the history; mutant R15 restores it although the log has grown since."""
        exchanges = [(exchange.prompt, exchange.response) for exchange in self.history]
        return json.dumps(exchanges).encode()


class CachingProvider(BareProvider):
    """A provider that prefers its blob to the log, as the port allows."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._cached = model

    async def create(self, opening: Opening) -> CachingConversation:
        """Open a new conversation."""
        return CachingConversation(self._cached, opening)

    async def restore(self, opening: Opening, identity: str, blob: bytes) -> CachingConversation:
        """Resume with the history of the blob, or with the log if there is no blob."""
        del identity
        if blob:
            history = tuple(Exchange(*pair) for pair in json.loads(blob))
            opening = replace(opening, history=history)
        return CachingConversation(self._cached, opening)

    async def identities(self) -> Sequence[str]:
        """Return no names: the provider keeps no conversation."""
        return ()
