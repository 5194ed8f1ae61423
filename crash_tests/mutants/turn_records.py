"""Mutants of the records of turns: the line of a turn is not their only commit point."""

from __future__ import annotations

from typing import Final

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
