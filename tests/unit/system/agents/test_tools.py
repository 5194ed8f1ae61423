"""OperatorCalls of tools, whatever the tool: repeated, malformed, unknown."""

from __future__ import annotations

from typing import Any

import pytest

from system.ports import JsonObject
from tests.unit.system.agents.family import Family


def test_a_call_that_comes_twice_is_done_once_and_answered_twice(family: Family) -> None:
    tools = family.turn("Bob").tools
    arguments: JsonObject = {"to": "Eve", "payload": 1}

    first = tools.call("same", "send_message", arguments)
    again = tools.call("same", "send_message", arguments)
    other = tools.call("other", "send_message", arguments)

    assert again == first != other
    assert len(tools.draft.outbox) == 2


def test_a_refusal_that_comes_twice_stays_a_refusal(family: Family) -> None:
    tools = family.turn("Bob").tools
    first = tools.call("same", "poke", {"to": "nobody"})

    assert tools.call("same", "check_inbox", {}) == first


@pytest.mark.parametrize("arguments", [None, [], "to", 7])
def test_arguments_that_are_no_object_are_refused(family: Family, arguments: Any) -> None:
    turn = family.turn("Bob")

    assert turn.tools.call("1", "check_inbox", arguments) == {
        "error": f"the arguments of a tool are an object, not {arguments!r}"
    }


def test_a_tool_that_does_not_exist_is_refused_with_those_that_do(family: Family) -> None:
    assert family.turn("Bob").error("sing") == (
        "there is no tool 'sing'; known are send_message, broadcast, poke, check_inbox, "
        "spawn_agent, list_children, inspect_agent, set_agent_metadata, complete, remind_me, "
        "cancel_reminder, subscribe, unsubscribe, gate, ungate, permit_turn, perform, "
        "begin_task, checkpoint, list_tasks, emit, schedule, unschedule"
    )
