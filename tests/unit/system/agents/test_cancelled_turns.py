"""A turn whose task is cancelled, as when a program ends without ``close``."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from tests.unit.system.agents.room import Room, log_of, opened
from tests.unit.system.agents.test_recorded_turns import payload, records, turn_lines


@pytest.mark.parametrize("failing", [False, True])
def test_a_turn_whose_task_is_cancelled_is_recorded_as_its_line_says(*, failing: bool) -> None:
    outcomes = set()
    for steps in range(40):
        room, ada = opened()
        log = log_of(room.session(ada))
        room.run(room.runtime.send(ada, "hello"))
        if failing:
            room.files.fail("fdatasync", log, errno.EIO)
        room.run(cancel_turns(room, ada, steps))
        room.settle()
        failed = room.events(room.session(ada)).count("turn.failed")
        room.reopen(start=False)
        committed = {line["turn_id"] for line in turn_lines(room, ada, "turn.complete")}
        assert failed + len(committed) == 1, steps
        for record in records(room):
            response: Any = record.final_response
            succeeded = response is not None and response["status"] == "success"
            assert succeeded == (payload(record, 1)["turnId"] in committed), steps
        outcomes.add(failed)
    assert outcomes == {0, 1}


async def cancel_turns(room: Room, agent_id: str, steps: int) -> None:
    """Cancel the task that takes the turns of an agent after so many steps, if it still runs."""
    for _ in range(steps):
        await asyncio.sleep(0)
    if (turns := room.agent(agent_id).work.turns.task) is not None:
        turns.cancel()
