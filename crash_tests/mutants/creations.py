"""Mutants of creations: agents that a repeated request, a refusal or a crash leaves half made."""

from __future__ import annotations

from crash_tests.mutants.folders import AGENT_TESTS
from oracles.runtime.violations import (
    BrokenTree,
    DuplicateName,
    LeakedConversation,
    LostMessage,
    LostSpawn,
)
from oracles.violation import (
    Duplicated,
    FalseAlarm,
    InvalidState,
    LostAck,
    OutOfSync,
    Phantom,
    Reordered,
    Starved,
)
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch
from sim.errors import Stuck

requests_are_not_restored = Mutant(
    "a request for an agent is forgotten by a boot",
    "runtime",
    (Duplicated, FalseAlarm, LostAck),
    (
        SourcePatch(
            "system.agents.root_creation",
            "if (data := agent.history.agent) is not None and data.request_id is not None",
            "if (data := agent.history.agent) is not None and data.request_id == ''",
        ),
    ),
)

request_under_way_is_repeated = Mutant(
    "a request that is repeated while it is under way creates a second agent",
    "runtime",
    (Duplicated, DuplicateName, FalseAlarm, KeyError),
    (
        SourcePatch(
            "system.agents.root_creation",
            """
            if request_id in self._under_way:
                return await self._under_way[request_id]
            """,
            """
            if request_id in self._under_way:
                self._orchestrator.tree.release(name)
            """,
        ),
    ),
)

refused_creation_keeps_its_name = Mutant(
    "the name of a creation that the disk has refused stays reserved",
    "runtime",
    (FalseAlarm, Starved),
    (
        SourcePatch(
            "system.agents.root_creation",
            """
            except (ProviderError, StorageFull, OSError):
                tree.release(name)
                if request_id is not None:
            """,
            """
            except (ProviderError, StorageFull, OSError):
                if request_id is not None:
            """,
        ),
    ),
)

refused_creation_leaks_its_conversation = Mutant(
    "the conversation of a creation that the disk has refused is not closed",
    "runtime",
    (LeakedConversation,),
    (
        SourcePatch(
            "system.agents.root_creation",
            """
            orchestrator.forget(agent)
            with suppress(ProviderError):
                await conversation.stop()
            """,
            "orchestrator.forget(agent)",
        ),
    ),
)

refused_creation_keeps_its_slot = Mutant(
    "a creation that the disk has refused keeps its slot",
    "runtime",
    (FalseAlarm, Starved, Stuck),
    (
        SourcePatch(
            "system.agents.root_creation",
            """
            pool.give_up()
            orchestrator.forget(agent)
            """,
            "orchestrator.forget(agent)",
        ),
    ),
)

lines_of_an_interrupted_creation_are_repeated = Mutant(
    "the lines of an interrupted creation are written again",
    patches=(
        SourcePatch(
            "system.agents.agent_log",
            "logged = (history.session is not None, history.agent is not None)",
            "logged = (False, False)",
        ),
    ),
    tests=(
        (
            f"{AGENT_TESTS}/test_outboxes.py"
            "::test_a_child_that_has_its_bootstrap_already_is_not_given_another"
        ),
    ),
)

grandchildren_are_not_placed = Mutant(
    "recovery places the agents of the first two generations only",
    "runtime",
    (BrokenTree, FalseAlarm, InvalidState, LostAck, OutOfSync),
    (
        SourcePatch(
            "system.recovery.parents_first",
            """
            while waiting:
                yield from waiting
            """,
            """
            for _ in range(2):
                yield from waiting
            """,
        ),
    ),
)

child_is_created_without_its_message = Mutant(
    "a child is created by a first append, and gets its instructions by a second one",
    "runtime",
    (LostMessage, LostSpawn, Reordered, Starved),
    (
        SourcePatch(
            "system.agents.agent_log",
            "lines += [(line.event, line.data) for line in due if not history.knows(line.key)]",
            "",
        ),
    ),
)

spawned_child_is_an_orphan = Mutant(
    "the files of a child whose creation was interrupted are removed, and its outbox entry dropped",
    "runtime",
    (LostSpawn,),
    (
        SourcePatch(
            "system.recovery.place_agents",
            """
            elif verdict is Verdict.ORPHAN:
                _remove(recovery, session_id)
            """,
            """
            else:
                recovery.orchestrator.lost.add(session_id)
                _remove(recovery, session_id)
            """,
        ),
    ),
)

abandoned_call_is_cancelled = Mutant(
    "a call of the operator ends when its caller stops waiting",
    "runtime",
    (Duplicated, FalseAlarm, InvalidState, LostAck, OutOfSync, Phantom, Starved),
    (
        SourcePatch(
            "system.operator_calls",
            "return await shield(self.calls.begin(call(self, *args, **kwargs), call.__name__))",
            "return await self.calls.begin(call(self, *args, **kwargs), call.__name__)",
        ),
    ),
)
