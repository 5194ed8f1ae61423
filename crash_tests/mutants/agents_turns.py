"""Turns that lose, repeat or make up work: holes R4, R7, R12 and R16."""

from __future__ import annotations

from dataclasses import replace

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
from system.agents.agent import Agent
from system.agents.agent_log import QueuedLine
from system.agents.dispatcher import Dispatcher
from system.agents.tools import TurnTools
from system.agents.turn_complete import TurnComplete
from system.agents.turns import TurnFailed, Turns
from system.ports import Conversation, Json, JsonObject


class DrainingTurns(Turns):
    """R4: a turn takes everything out of the inbox, and says that it was all shown."""

    async def _commit(
        self, agent: Agent, provider: str, identity: str, turn_id: str, response: str,
        tools: TurnTools,
    ) -> TurnComplete:  # fmt: skip
        tools.draft.presented = list(agent.history.pending)
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
    ) -> TurnComplete:  # fmt: skip
        spawned, tools.draft.spawned = tools.draft.spawned, {}
        try:
            turn = await super()._commit(agent, provider, identity, turn_id, response, tools)
        finally:
            tools.draft.spawned = spawned
        return replace(turn, outbox=turn.outbox._replace(spawned=tuple(spawned.values())))


class HastyTools(TurnTools):
    """R12: ``complete`` delivers the response at once; the agent ends when the turn does."""

    def _called(self, name: str, arguments: Json) -> JsonObject:
        result = super()._called(name, arguments)
        response = self.draft.completion
        if name == "complete" and response is not None:
            dispatcher = Dispatcher(self._orchestrator)
            parent = self._orchestrator.agents[response.recipient]
            dispatcher.enqueue(parent, QueuedLine.of_message(response))
            self._orchestrator.task(dispatcher.dispatch(), "respond")
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
