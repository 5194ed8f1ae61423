"""Mutants of turns: committed lines that differ from the turn, and effects before the commit."""

from __future__ import annotations

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
from oracles.violation import Phantom, Reordered
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

inbox_is_drained = Mutant(
    "a turn consumes messages that it never presented",
    "runtime",
    (UnpresentedDelivery, PresentedMismatch, LostMessage),
    (
        SourcePatch(
            "system.agents.agent_log",
            "permitted = history.open_turns[turn_id].permitted",
            """
            permitted = history.open_turns[turn_id].permitted
            draft.presented = list(history.pending)
            """,
        ),
    ),
)

failed_turn_is_committed = Mutant(
    "a failed turn is recorded as a completed one",
    "runtime",
    (PrematureCommit,),
    (
        SourcePatch(
            "system.agents.turns",
            """
            except (ProviderError, TurnFailed) as error:
                raise TurnFailed(reason_of(error)) from error
            """,
            """
            except (ProviderError, TurnFailed):
                return ""
            """,
        ),
    ),
)

response_precedes_its_turn = Mutant(
    "a response is delivered before its turn is durable",
    "runtime",
    (DuplicateCompletion, MisroutedMessage, Phantom, Reordered),
    (
        SourcePatch(
            "system.agents.tools",
            "from system.agents.orchestrator import Orchestrator",
            """
            from system.agents.dispatcher import Dispatcher
            from system.agents.orchestrator import Orchestrator
            """,
        ),
        SourcePatch(
            "system.agents.tools",
            """
            self.draft.completion = self._message(to, MessageKind.RESPONSE, arguments.get("result"))
            """,
            """
            self.draft.completion = self._message(to, MessageKind.RESPONSE, arguments.get("result"))
            dispatcher = Dispatcher(self._orchestrator)
            dispatcher.enqueue(self._orchestrator.agents[to], self.draft.completion)
            self._orchestrator.task(dispatcher.dispatch(), "respond")
            """,
        ),
    ),
)

children_are_not_logged = Mutant(
    "the line of a turn does not contain its children",
    "runtime",
    (Phantom, LostSpawn, EffectsMismatch),
    (
        SourcePatch(
            "system.agents.turn_complete",
            '"spawned": [spawn.data() for spawn in outbox.spawned],',
            '"spawned": [],',
        ),
    ),
)
