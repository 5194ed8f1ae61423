"""Mutants of the records of turns: the line of a turn is not their only commit point."""

from __future__ import annotations

from typing import Final

from crash_tests.mutants.folders import AGENT_TESTS
from oracles.violation import LostAck, Phantom, TornRecord
from powercut.fuzz.mutant import Mutant
from powercut.fuzz.source_patch import SourcePatch

_TARGET: Final = "runtime-recorded"

response_is_recorded_before_its_line = Mutant(
    "the response of a turn is recorded before its line is written",
    _TARGET,
    (Phantom,),
    (
        SourcePatch(
            "system.agents.turns",
            "turn = await self._commit(agent, pool.name, identity, turn_id, response, tools)",
            """
            if recorder:
                recorder._is_open = False
                recorder._recorder.complete(
                    {"status": "success", "payload": {"response": response}, "metadata": {}}
                )
            turn = await self._commit(agent, pool.name, identity, turn_id, response, tools)
            """,
        ),
    ),
)

committed_turns_stay_incomplete = Mutant(
    "recovery does not complete the record of a committed turn",
    _TARGET,
    (LostAck, TornRecord),
    (
        SourcePatch(
            "system.recovery.complete_records",
            "_finish(execution, _payloads(agent, recorded), recorded)",
            "continue",
        ),
    ),
)

own_file_ends_the_search = Mutant(
    "a record in a file of its own hides that those of earlier turns are lost",
    patches=(
        SourcePatch(
            "system.recovery.complete_records",
            "is_end = is_end and not (is_written or store.has_in_pack(execution_id))",
            "is_end = is_end and not (is_written or store.has(execution_id))",
        ),
    ),
    tests=(
        (
            f"{AGENT_TESTS}/test_lost_recordings.py"
            "::test_a_record_in_a_file_of_its_own_does_not_hide_the_loss_of_earlier_ones"
            "[records/00000001.pack]"
        ),
    ),
)
