"""Mutants of agents that share something: locks, slots, names and their place in the tree."""

from __future__ import annotations

from crash_tests.mutants.folders import AGENT_TESTS
from oracles.runtime.violations import (
    BrokenTree,
    ConversationMismatch,
    DuplicateCompletion,
    DuplicateName,
    EffectsMismatch,
    ForbiddenRecipient,
    LeakedConversation,
    OverlappingTurns,
    UnreturnedMessages,
    WriteAfterEnd,
)
from oracles.violation import Duplicated, FalseAlarm, Starved, TornRecord
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch
from sim.errors import Stuck

message_is_received_without_the_lock = Mutant(
    "an operator's message is appended without the lock of the log",
    "runtime",
    (Duplicated, UnreturnedMessages, WriteAfterEnd),
    (
        SourcePatch(
            "system.agents.agent_log",
            """
            async with self.lock:
                if self.history.ended:
                    raise UnknownAgent(self._agent_id, "it has ended")
                self._open()
                if message.message_id in self.history.enqueued:
            """,
            """
            if True:
                if self.history.ended:
                    raise UnknownAgent(self._agent_id, "it has ended")
                self._open()
                if message.message_id in self.history.enqueued:
            """,
        ),
    ),
)

agent_ends_during_its_turn = Mutant(
    "the operator ends an agent without waiting for its turn",
    "runtime",
    (AssertionError, DuplicateCompletion, WriteAfterEnd),
    (
        SourcePatch(
            "system.runtime",
            """
            async with agent.work.turn:
                self._living(agent_id)
                if children := orchestrator.tree.dependants(agent_id):
                    raise HasChildren(orchestrator.tree.names[agent_id], ", ".join(children))
                await agent.log.commit(
                    lambda: [event.terminated(agent_id, OPERATOR, list(agent.history.pending))]
                )
                orchestrator.tree.end(agent_id)
            """,
            """
            if children := orchestrator.tree.dependants(agent_id):
                raise HasChildren(orchestrator.tree.names[agent_id], ", ".join(children))
            pending = agent.history.pending
            await agent.log.commit(lambda: [event.terminated(agent_id, OPERATOR, list(pending))])
            orchestrator.tree.end(agent_id)
            """,
        ),
    ),
)

end_is_not_checked_again = Mutant(
    "an agent that has ended while the operator waited for its turn is ended again",
    patches=(
        SourcePatch(
            "system.runtime",
            """
            async with agent.work.turn:
                self._living(agent_id)
            """,
            "async with agent.work.turn:",
        ),
    ),
    tests=(
        f"{AGENT_TESTS}/test_operator.py::test_an_agent_that_completes_first_cannot_be_ended_again",
    ),
)

slot_is_not_reserved = Mutant(
    "the slot of a conversation that is being opened counts as free",
    "runtime",
    (LeakedConversation,),
    (
        SourcePatch(
            "system.agents.multiplexer",
            "if len(self._open) + len(self._entering) + self._creating < self._slots:",
            "if len(self._open) + self._creating < self._slots:",
        ),
    ),
)

creation_reserves_no_slot = Mutant(
    "the slot of a conversation that is being created counts as free",
    "runtime",
    (LeakedConversation,),
    (
        SourcePatch(
            "system.agents.multiplexer",
            "if len(self._open) + len(self._entering) + self._creating < self._slots:",
            "if len(self._open) + len(self._entering) < self._slots:",
        ),
    ),
)

slot_of_a_failed_creation_is_lost = Mutant(
    "a creation that the provider refuses keeps its slot",
    "runtime",
    (FalseAlarm, Starved, Stuck),
    (
        SourcePatch(
            "system.agents.multiplexer",
            """
            except BaseException:
                self.give_up()
                raise
            """,
            """
            except BaseException:
                raise
            """,
        ),
    ),
)

waiting_turn_is_not_woken = Mutant(
    "a slot that is given back wakes none of those that wait for it",
    "runtime",
    (Starved, Stuck),
    (
        SourcePatch(
            "system.agents.multiplexer",
            """
            if slot is not None:
                slot.held = False
            self._wake()
            """,
            """
            if slot is not None:
                slot.held = False
            """,
        ),
    ),
)

held_slot_is_closed = Mutant(
    "a conversation is suspended while a turn holds it",
    "runtime",
    (ConversationMismatch, KeyError, LeakedConversation, OverlappingTurns),
    (
        SourcePatch(
            "system.agents.multiplexer",
            """
            if slot is not None and not slot.held:
                await self._evict(slot)
                return
            """,
            """
            if slot is not None:
                await self._evict(slot)
                return
            """,
        ),
    ),
)

conversation_of_a_failed_turn_goes_on = Mutant(
    "the conversation of a turn that failed is used again",
    "runtime",
    (ConversationMismatch,),
    (
        SourcePatch(
            "system.agents.turns",
            "await pool.discard(agent)",
            "",
        ),
    ),
)

ended_agent_keeps_its_slot = Mutant(
    "the conversation of an agent that has ended is not closed",
    "runtime",
    (FalseAlarm, LeakedConversation, Starved),
    (
        SourcePatch(
            "system.agents.dispatcher",
            """
            if pool is not None:
                await pool.close(agent)
            """,
            """
            if pool is None:
                return
            """,
        ),
    ),
)

repeated_call_is_made_again = Mutant(
    "a tool call that a provider repeats is made again",
    "runtime",
    (EffectsMismatch, TornRecord),
    (
        SourcePatch(
            "system.agents.tools",
            """
            if call_id not in self._results:
                self._results[call_id] = self._called(name, arguments)
            """,
            """
            if call_id not in self._results or name == "send_message":
                self._results[call_id] = self._called(name, arguments)
            """,
        ),
    ),
)

failed_turn_keeps_its_names = Mutant(
    "the names of children of a failed turn stay reserved",
    "runtime",
    (FalseAlarm, Starved),
    (
        SourcePatch(
            "system.agents.turns",
            "tools.give_up()",
            "",
        ),
    ),
)

name_is_not_reserved = Mutant(
    "a name that a running turn has given to a child may be taken again",
    "runtime",
    (DuplicateName,),
    (
        SourcePatch(
            "system.agents.tree",
            "return name in self._by_name or name in self._reserved",
            "return name in self._by_name",
        ),
    ),
)

name_of_an_ended_agent_stays_taken = Mutant(
    "the name of an agent that has ended stays taken",
    "runtime",
    (FalseAlarm, Starved),
    (
        SourcePatch(
            "system.agents.tree",
            """
            if self._by_name.get(node.name) == agent_id:
                del self._by_name[node.name]
            """,
            "",
        ),
    ),
)

agent_with_new_children_completes = Mutant(
    "an agent completes although its turn has spawned a child",
    "runtime",
    (BrokenTree,),
    (
        SourcePatch(
            "system.agents.tools",
            """
            children = [
                *self._tree.dependants(node.agent_id),
                *(spawn.name for spawn in self.draft.spawned.values()),
            ]
            """,
            "children = self._tree.dependants(node.agent_id)",
        ),
    ),
)

roots_are_siblings = Mutant(
    "the roots of a tree count as siblings",
    "runtime",
    (ForbiddenRecipient,),
    (
        SourcePatch(
            "system.agents.tree",
            """
            if parent_id is None:
                return []
            """,
            """
            if parent_id is None:
                return [node.agent_id for node in self if node.alive and node.parent_id is None]
            """,
        ),
    ),
)
