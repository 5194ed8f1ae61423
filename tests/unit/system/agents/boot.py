"""Helpers of the tests of recovery: a boot and its report."""

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
    return [(reported.session_id, reported.problem) for reported in room.runtime.report.problems]
