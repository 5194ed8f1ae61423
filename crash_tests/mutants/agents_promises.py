"""Promises that a crash breaks: holes R5, R6, R10, R13, and a part of R21."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from crash_tests.mutants.runtime_parts import RuntimeParts
from oracles.runtime.violations import (
    EffectsMismatch,
    LostMessage,
    LostSpawn,
    UnfinishedTermination,
)
from oracles.violation import InvalidState, LostAck, OutOfSync, Starved, TornRecord
from system.agents.agent import Agent, Owed
from system.agents.effects import Spawn
from system.agents.message import UNANSWERED, USER, Message
from system.agents.orchestrator import Orchestrator
from system.errors import StorageError
from system.ports import Json, JsonObject, ProviderError


class UnloggedFirstMessages(Orchestrator):
    """R5: a message to a child of the same turn finds no log yet, and nobody says so."""

    def promise(self, agent: Agent, turn: JsonObject, touched: dict[str, Agent]) -> None:
        born = {child["agent_id"] for child in _objects(turn["spawned"])}
        logged: list[Json] = [
            message for message in _objects(turn["outbox"]) if message["recipient"] not in born
        ]
        super().promise(agent, {**turn, "outbox": logged}, touched)


class BareSystemMessages(Orchestrator):
    """R6: what the runtime itself has to say is logged without its time and its reference."""

    def owe(self, agent: Agent, items: Iterable[Owed]) -> bool:
        return super().owe(agent, [_bare(item) for item in items])


class VolatileUser(Orchestrator):
    """R10: messages to USER are kept in memory alone."""

    def _owe_message(self, data: JsonObject, touched: dict[str, Agent]) -> None:
        if data["recipient"] != USER:
            super()._owe_message(data, touched)
        elif self.take_turns is not None:
            message = Message.of_data(data)
            self.user.history.pending[message.message_id] = message


class ForgottenBootstraps(Orchestrator):
    """R13: a child's first message is in memory alone until its conversation is open."""

    def _spawned(self, parent: Agent, spawn: Spawn, touched: dict[str, Agent]) -> None:
        if spawn.agent_id not in self.agents:
            super()._spawned(parent, spawn, touched)

    async def _told(self, agent: Agent) -> None:
        if agent.creation is None:
            await super()._told(agent)
            return
        later, agent.owed = agent.owed, {}
        await super()._told(agent)
        self.task(self._bootstrap(agent, later), f"bootstrap {agent.name()}")

    async def _bootstrap(self, child: Agent, owed: dict[str, Owed]) -> None:
        if child.history.session is not None:
            pool = self.multiplexer.pool(child.history.session.provider)
            with suppress(ProviderError, StorageError, OSError):
                await pool.hold(child)
                pool.release(child)
        child.owed = {**owed, **child.owed}
        await super()._told(child)


class EndlessSessions(Orchestrator):
    """R21: the record of an agent that has ended says SUSPENDED for ever."""

    async def retire(self, agent: Agent) -> None:
        """Do nothing."""


message_to_new_child_is_lost = RuntimeParts(orchestrator=UnloggedFirstMessages).mutant(
    "a message to a child of the same turn is not logged", LostMessage, EffectsMismatch
)
system_messages_are_bare = RuntimeParts(orchestrator=BareSystemMessages).mutant(
    "the runtime's own messages lose their time and reference", TornRecord
)
messages_to_user_are_volatile = RuntimeParts(orchestrator=VolatileUser).mutant(
    "messages to USER are volatile", LostAck, LostMessage
)
bootstrap_is_volatile = RuntimeParts(orchestrator=ForgottenBootstraps).mutant(
    "a child's first message is volatile", LostSpawn, LostMessage, Starved
)
ended_sessions_stay_suspended = RuntimeParts(orchestrator=EndlessSessions).mutant(
    "the record of an agent that has ended stays as it was",
    OutOfSync,
    UnfinishedTermination,
    InvalidState,
)


def _bare(item: Owed) -> Owed:
    if item.data.get("kind") not in UNANSWERED:
        return item
    return replace(item, data={**item.data, "timestamp": "", "reply_to": None, "metadata": {}})


def _objects(value: Json) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
