"""Promises that a crash breaks: holes R5, R6, R10, R13, and a part of R21."""

from __future__ import annotations

from contextlib import suppress

from crash_tests.mutants.runtime_parts import RuntimeParts
from oracles.runtime.violations import (
    EffectsMismatch,
    LostMessage,
    LostSpawn,
    UnfinishedTermination,
)
from oracles.violation import InvalidState, LostAck, OutOfSync, Reordered, Starved, TornRecord
from system.agents.agent import Agent
from system.agents.agent_log import QueuedLine
from system.agents.dispatcher import Dispatcher
from system.agents.message import UNANSWERED, USER, Message
from system.agents.orchestrator import Orchestrator
from system.agents.outbox import Outbox, Spawn
from system.errors import StorageError
from system.ports import ProviderError


class UnloggedFirstMessages(Dispatcher):
    """R5: a message to a child of the same turn finds no log yet, and is dropped."""

    def enqueue_outbox(self, agent: Agent, outbox: Outbox) -> None:
        new = {spawn.agent_id for spawn in outbox.spawned}
        logged = tuple(message for message in outbox.messages if message.recipient not in new)
        super().enqueue_outbox(agent, outbox._replace(messages=logged))


class BareSystemMessages(Dispatcher):
    """R6: the runtime's own messages are logged without their time and their reference."""

    def enqueue(self, agent: Agent, line: QueuedLine) -> None:
        if line.data.get("kind") in UNANSWERED:
            bare = {**line.data, "timestamp": "", "reply_to": None, "metadata": {}}
            line = line._replace(data=bare)
        super().enqueue(agent, line)


class VolatileUser(Dispatcher):
    """R10: messages to USER are kept in memory alone."""

    def _enqueue_message(self, message: Message) -> None:
        if message.recipient != USER:
            super()._enqueue_message(message)
        elif self.orchestrator.take_turns is not None:
            self.orchestrator.user.history.pending[message.message_id] = message


class ForgottenBootstraps(Dispatcher):
    """R13: a child's first messages are in memory alone until its conversation is open."""

    def __init__(self, orchestrator: Orchestrator) -> None:
        super().__init__(orchestrator)
        self._later: dict[str, list[QueuedLine]] = {}

    def _enqueue_child(self, parent: Agent, spawn: Spawn) -> None:
        if spawn.agent_id not in self.agents:
            super()._enqueue_child(parent, spawn)

    def enqueue(self, agent: Agent, line: QueuedLine) -> None:
        if agent.log.creation is not None:
            self._later.setdefault(agent.agent_id, [])
        if agent.agent_id in self._later:
            self._later[agent.agent_id].append(line)
            self._due[agent.agent_id] = agent
        else:
            super().enqueue(agent, line)

    async def _write(self, agent: Agent) -> None:
        await super()._write(agent)
        if agent.agent_id in self._later:
            self.orchestrator.task(self._bootstrap(agent), f"bootstrap {agent.name()}")

    async def _bootstrap(self, child: Agent) -> None:
        if child.history.session is not None:
            pool = self.orchestrator.multiplexer.pool(child.history.session.provider)
            with suppress(ProviderError, StorageError, OSError):
                async with child.schedule.turn:
                    await pool.hold(child)
                    pool.release(child)
        for line in self._later.pop(child.agent_id, ()):
            child.log.enqueue(line)
        await super()._write(child)


class EndlessSessions(Dispatcher):
    """R21: the record of an agent that has ended says SUSPENDED for ever."""

    async def retire(self, agent: Agent) -> None:
        """Do nothing."""


message_to_new_child_is_lost = RuntimeParts(dispatcher=UnloggedFirstMessages).mutant(
    "a message to a child of the same turn is not logged", LostMessage, EffectsMismatch
)
system_messages_are_bare = RuntimeParts(dispatcher=BareSystemMessages).mutant(
    "the runtime's own messages lose their time and reference", TornRecord
)
messages_to_user_are_volatile = RuntimeParts(dispatcher=VolatileUser).mutant(
    "messages to USER are volatile", LostAck, LostMessage
)
bootstrap_is_volatile = RuntimeParts(dispatcher=ForgottenBootstraps).mutant(
    "a child's first message is volatile", LostSpawn, LostMessage, Reordered, Starved
)
ended_sessions_stay_suspended = RuntimeParts(dispatcher=EndlessSessions).mutant(
    "the record of an agent that has ended stays as it was",
    OutOfSync,
    UnfinishedTermination,
    InvalidState,
)
