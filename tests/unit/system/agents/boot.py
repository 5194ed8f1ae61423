"""What the tests of recovery do and ask at a boot."""

from __future__ import annotations

from system.agents import event
from system.ports import JsonObject
from system.runtime import Runtime
from system.sessions.session_problem import Problem
from tests.unit.system.agents.room import ADA, Room

END: tuple[str, JsonObject] = (
    event.AGENT_TERMINATED, {"agent_id": ADA, "reason": "completed", "returned": []},
)  # fmt: skip


def recovered(room: Room) -> Runtime:
    return room.open(start=False)


def problems(room: Room) -> list[tuple[str, Problem]]:
    return [(told.session_id, told.problem) for told in room.runtime.report.problems]
