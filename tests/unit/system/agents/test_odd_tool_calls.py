"""Calls of tools whose names, ids or arguments have odd types: errors are results, never raised."""

from __future__ import annotations

from typing import Any

import pytest

from system.agents.tools import TOOLS
from tests.unit.system.agents.acting import opened
from tests.unit.system.agents.test_bad_ids import BAD_IDS

MEMBERS = (
    "to", "payload", "reply_to", "name", "instructions", "provider", "model", "key", "value",
    "result", "delay_ns", "reminder_id", "subscription_id", "action", "arguments", "task_id",
    "todos", "event", "data", "status", "source", "description", "priority", "kind", "spec", "zone",
    "catch_up", "schedule_id",
)  # fmt: skip
GOOD: dict[str, Any] = {
    "to": "USER", "payload": 1, "name": "Bob", "instructions": "", "key": "k", "value": 1,
    "delay_ns": 1, "reminder_id": "r", "subscription_id": "s", "action": "mail", "todos": [],
    "event": "e", "task_id": "t", "kind": "every", "spec": "60", "schedule_id": "s",
}  # fmt: skip
EACH = pytest.mark.parametrize("odd", BAD_IDS.values(), ids=BAD_IDS)


@EACH
def test_an_odd_call_is_answered(odd: Any) -> None:
    room, ada = opened()
    answers: list[object] = []

    async def call() -> None:
        room.provider.hooks.clear()
        tools: Any = room.provider.tools
        if not isinstance(odd, str | int):
            refused = {"error"}
            assert set(tools.call(odd, "list_children", {})) == refused
            assert set(await tools.perform(odd, {"action": "read"})) == refused
        assert set(tools.call("name", odd, {})) == {"error"}
        if not isinstance(odd, dict):
            assert set(tools.call("arguments", "poke", odd)) == {"error"}
            assert set(await tools.perform("perform", odd)) == {"error"}
        for tool in TOOLS:
            for member in MEMBERS:
                arguments = {**GOOD, "name": f"{tool} {member}", member: odd}
                answers.append(tools.call(f"{tool} {member}", tool, arguments))

    room.provider.hooks["sent"] = call
    room.say(ada, "go")
    assert "turn.failed" not in room.events(room.session(ada))
    assert all(isinstance(answer, dict) for answer in answers)
    assert len(answers) == len(TOOLS) * len(MEMBERS)
    room.check_no_failures()
