"""Mutants of collection: agents that come back, and archives that are lost."""

from __future__ import annotations

from crash_tests.mutants.folders import SYSTEM_TESTS
from oracles.runtime.violations import BrokenTree, LostMessage, LostSpawn
from oracles.violation import InvalidState, LostAck, Phantom, Resurrected, SilentEmpty
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

collected_child_comes_back = Mutant(
    "a child is collected though its parent would create it again, and its row is not looked up",
    "runtime-collected",
    (BrokenTree, InvalidState, LostAck, LostMessage, LostSpawn, Phantom, Resurrected),
    (
        SourcePatch(
            "system.collector",
            "and agent.agent_id not in named",
            "and named is not None",
        ),
        SourcePatch(
            "system.agents.orchestrator",
            "return self.state.transact(lambda each: ENDED.read(each, agent_id)) is not None",
            "return False",
        ),
    ),
)

archive_is_volatile = Mutant(
    "an agent is collected before its archive is durable",
    "runtime-collected",
    (LostAck, SilentEmpty),
    (
        SourcePatch(
            "system.archive",
            """
                archived += len(content)
            files.sync_dir(ARCHIVE)
            """,
            "    archived += len(content)",
        ),
    ),
)

collected_request_is_forgotten = Mutant(
    "the request of a collected agent creates another one",
    patches=(
        SourcePatch(
            "system.agents.root_creation",
            """
                if row is not None:
                    return row.agent_id
            """,
            "assert row is None or row",
        ),
    ),
    tests=(
        (
            f"{SYSTEM_TESTS}/test_collector.py"
            "::test_m3_a_request_whose_agent_was_collected_gives_the_same_agent"
        ),
    ),
)

garbage_of_collection_stays = Mutant(
    "a boot reads the directory of an agent that was collected",
    patches=(
        SourcePatch(
            "system.recovery.sweep_sessions",
            """
            if state is None:
                return
            """,
            """
            if state is not None or not emptied:
                return
            """,
        ),
    ),
    tests=(
        (
            f"{SYSTEM_TESTS}/test_collector.py"
            "::test_a_directory_whose_removal_was_interrupted_is_garbage_at_boot"
        ),
    ),
)

turn_in_doubt_names_no_agent = Mutant(
    "an agent is collected although a turn whose barrier has failed may have subscribed to its end",
    patches=(
        SourcePatch(
            "system.agents.agent_log",
            """
            if not self.stopped:
                self._refused = [(event.TURN_FAILED, data)]
                self.history.abandon_turn(turn_id, counts=counts)
            """,
            """
            self._refused = [(event.TURN_FAILED, data)]
            self.history.abandon_turn(turn_id, counts=counts)
            """,
        ),
    ),
    tests=(
        f"{SYSTEM_TESTS}/test_kept_agents.py::test_an_agent_that_a_turn_in_doubt_may_name_is_kept",
    ),
)
