"""Payloads are kept as they were at the call: foreign code may change its objects afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from system.agents.tools import TOOLS
from system.runtime import Options
from tests.unit.system.agents.emitting import emit
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import Room, opened
from tests.unit.system.agents.test_odd_tool_calls import GOOD
from tests.unit.system.agents.test_routing import FakeRouter


def during(room: Room, agent_id: str, call: Callable[[Any], None]) -> None:
    """Let the provider of an agent call tools once, at the end of its answer."""

    async def once() -> None:
        room.provider.hooks.clear()
        call(room.provider.tools)

    room.provider.hooks["sent"] = once
    room.say(agent_id, "go")


def test_messages_with_one_object_are_shown_as_they_were_sent(room: Room) -> None:
    room.open(start=False)
    ada = room.create()
    payload: dict[str, Any] = {"number": 0, "list": []}
    for number in range(3):
        payload["number"] = number
        payload["list"].append(number)
        room.run(room.runtime.send(ada, payload))
    room.start()
    room.settle()
    assert room.shown() == [
        ("text", {"number": number, "list": [*range(number + 1)]}) for number in range(3)
    ]


def test_arguments_of_tools_are_kept_as_they_were_at_the_call() -> None:
    members = [
        ("send_message", "payload"), ("set_agent_metadata", "value"), ("remind_me", "payload"),
        ("begin_task", "todos"), ("begin_task", "data"), ("emit", "payload"),
        ("schedule", "payload"), ("perform", "arguments"), ("spawn_agent", "instructions"),
    ]  # fmt: skip
    assert {tool for tool, _ in members} <= set(TOOLS)
    room, ada = opened()
    objects: list[dict[str, Any]] = []

    def call(tools: Any) -> None:
        for tool, member in members:
            value: dict[str, Any] = {"list": []}
            objects.append(value)
            good = {**GOOD, "source": "IMMEDIATE", "key": "immediate:k", "event": "began"}
            tools.call(f"{tool} {member}", tool, {**good, member: value})
        for value in objects:
            value["list"].append("changed")

    during(room, ada, call)
    complete = [line for line in room.lines(room.session(ada)) if line.event == "turn.complete"]
    assert "'list': []" in str(complete[0].data)
    assert "changed" not in str(complete)


def test_results_of_tools_are_copies() -> None:
    room, ada = opened()
    room.say(ada, script(("spawn_agent", {"name": "Bob"}), ("begin_task", {"todos": [1]})))
    room.say(
        room.named("Bob").agent_id,
        script(("set_agent_metadata", {"key": "k", "value": {"list": []}})),
    )

    async def change() -> None:
        room.provider.hooks.clear()
        await room.runtime.send(ada, {"list": []})
        tools: Any = room.provider.tools
        tools.call("1", "check_inbox", {})["messages"][0]["payload"]["list"].append("changed")
        tools.call("2", "inspect_agent", {"name": "Bob"})["metadata"]["k"]["list"].append("changed")
        tools.call("3", "list_tasks", {})["tasks"][0]["todos"].append("changed")
        raise ValueError("the turn fails")

    room.provider.hooks["sent"] = change
    room.say(ada, "go")
    room.settle(1)
    assert room.shown() == [("text", "go"), ("text", {"list": []})]
    assert room.named("Bob").metadata == {"k": {"list": []}}
    [task] = room.agent(ada).tasks.values()
    assert task.todos == [1]


def test_a_view_is_a_copy() -> None:
    room, ada = opened()
    room.say(ada, script(
        ("send_message", {"to": "USER", "payload": {"list": []}}),
        ("set_agent_metadata", {"key": "k", "value": {"list": []}}),
    ))  # fmt: skip
    view: Any = room.runtime.view()
    view.user[0].payload["list"].append("changed")
    view.agents[0].metadata["k"]["list"].append("changed")
    assert room.to_user() == [("text", {"list": []})]
    assert room.named("Ada").metadata == {"k": {"list": []}}


def test_candidates_of_a_router_are_copies() -> None:
    router = FakeRouter("Ada")
    room = Room(Options(router=router))
    room.open()
    ada = room.create("Ada")
    room.create("Bob")
    room.say(ada, script(("set_agent_metadata", {"key": "k", "value": {"list": []}})))
    emit(room, None)
    candidate: Any = router.asked[0][1][0]
    candidate.metadata["k"]["list"].append("changed")
    assert room.named("Ada").metadata == {"k": {"list": []}}
