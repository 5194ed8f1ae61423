"""Turns that lose, repeat or make up work: holes R4, R7, R12 and R16."""

from __future__ import annotations

from collections.abc import Sequence

from crash_tests.mutants.runtime_parts import RuntimeParts
from oracles.runtime.violations import (
    DuplicateCompletion,
    EffectsMismatch,
    LostMessage,
    LostSpawn,
    MisroutedMessage,
    PrematureCommit,
    PresentedMismatch,
    UnpresentedDelivery,
)
from oracles.violation import Phantom
from system.agents import event
from system.agents.agent import Agent, Owed
from system.agents.orchestrator import Orchestrator
from system.agents.tools import TurnTools
from system.agents.turns import TurnFailed, Turns
from system.ports import Conversation, Json, JsonObject


class DrainingTurns(Turns):
    """R4: a turn takes everything out of the inbox, and says that it was all shown."""

    async def _commit(
        self, agent: Agent, provider: str, identity: str, turn_id: str, response: str,
        tools: TurnTools,
    ) -> JsonObject:  # fmt: skip
        tools.effects.presented = list(agent.history.pending)
        return await super()._commit(agent, provider, identity, turn_id, response, tools)


class FinallyCompleteTurns(Turns):
    """R7: a turn whose answer breaks off is recorded as a completed one."""

    async def _answer(
        self, conversation: Conversation, prompt: str, turn_id: str, tools: TurnTools
    ) -> str:
        try:
            return await super()._answer(conversation, prompt, turn_id, tools)
        except TurnFailed:
            return ""


class SpawnlessTurns(Turns):
    """R16: children stand in no line; they are made after the turn's line is durable."""

    async def _commit(
        self, agent: Agent, provider: str, identity: str, turn_id: str, response: str,
        tools: TurnTools,
    ) -> JsonObject:  # fmt: skip
        spawned, tools.effects.spawned = tools.effects.spawned, {}
        try:
            turn = await super()._commit(agent, provider, identity, turn_id, response, tools)
        finally:
            tools.effects.spawned = spawned
        return {**turn, "spawned": [spawn.data() for spawn in spawned.values()]}


class HastyTools(TurnTools):
    """R12: ``complete`` delivers the response at once; the agent ends when the turn does."""

    def __init__(self, around: Orchestrator, agent: Agent, presented: Sequence[str]) -> None:
        super().__init__(around, agent, presented)
        self._orchestrator = around

    def _called(self, name: str, arguments: Json) -> JsonObject:
        result = super()._called(name, arguments)
        response = self.effects.completion
        if name == "complete" and response is not None:
            parent = self._orchestrator.agents[response.recipient]
            line = Owed(response.message_id, event.MESSAGE_ENQUEUED, response.data())
            self._orchestrator.owe(parent, [line])
            self._orchestrator.task(self._orchestrator.tell([parent]), "respond")
        return result


inbox_is_drained = RuntimeParts(turns=DrainingTurns).mutant(
    "a turn consumes messages that it never showed",
    UnpresentedDelivery,
    PresentedMismatch,
    LostMessage,
)
failed_turn_is_complete = RuntimeParts(turns=FinallyCompleteTurns).mutant(
    "a failed turn is recorded as a completed one", PrematureCommit
)
children_stand_in_no_line = RuntimeParts(turns=SpawnlessTurns).mutant(
    "children stand in no line of their parent", Phantom, LostSpawn, EffectsMismatch
)
response_goes_before_its_turn = RuntimeParts(tools=HastyTools).mutant(
    "a response is delivered before its turn is durable",
    DuplicateCompletion,
    MisroutedMessage,
    Phantom,
)
