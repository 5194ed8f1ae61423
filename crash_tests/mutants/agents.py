"""Mutants of sessions and agents: records that differ from what a call has acknowledged."""

from __future__ import annotations

from crash_tests.mutants.folders import AGENT_TESTS
from oracles.violation import InvalidState
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

record_is_set_before_it_is_written = Mutant(
    "the runtime believes a record that the disk has refused",
    "runtime",
    (InvalidState,),
    (
        SourcePatch(
            "system.agents.agent_log",
            """
            self._record_in_doubt = True
            await self._host.workers.run(lambda: store.replace(after))
            self.record, self._record_in_doubt = after, False
            """,
            """
            self.record = after
            await self._host.workers.run(lambda: store.replace(after))
            """,
        ),
    ),
)

discarded_conversation_stays_active = Mutant(
    "a suspension forgets the record of a conversation that is not open",
    patches=(
        SourcePatch(
            "system.agents.multiplexer",
            """
            if agent.alive:
                # The conversation was discarded after a failed turn, which leaves the record as it
                # is, or it was not opened because the disk refused the record.
                await agent.log.save_suspended()
            """,
            "",
        ),
    ),
    tests=(
        (
            f"{AGENT_TESTS}/test_suspension.py"
            "::test_a_conversation_that_a_failed_turn_has_dropped_is_suspended_in_its_record"
        ),
    ),
)
