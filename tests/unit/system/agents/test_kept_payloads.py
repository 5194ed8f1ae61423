"""Payloads are kept as they were at the call: foreign code may change its objects afterwards."""

from __future__ import annotations

from asyncio import create_task, sleep
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import pytest

from system.agents.tools import TOOLS
from system.durable.schedule import ScheduleSpec
from system.durable.trigger import Trigger
from system.ports import Json, JsonObject, Performed
from system.runtime import Options
from tests.unit.system.agents import acting
from tests.unit.system.agents.acting import ActingRoom
from tests.unit.system.agents.emitting import DAY, emit, now, spec
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import Room, opened
from tests.unit.system.agents.test_odd_tool_calls import GOOD
from tests.unit.system.agents.test_routing import FakeRouter

Called: TypeAlias = Coroutine[Any, Any, object]
"""A call of the operator."""


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


def _emit(room: ActingRoom, payload: JsonObject) -> Called:
    return room.runtime.emit(spec(room, room.named("Ada").agent_id, payload, in_s=DAY))


def _import(room: ActingRoom, payload: JsonObject) -> Called:
    session_id = room.session(room.named("Ada").agent_id)
    legacy: Json = {"payload": payload, "fire_at": now(room) + DAY, "session_id": session_id}
    return room.runtime.triggers.import_legacy([legacy])


def _perform(room: ActingRoom, payload: JsonObject) -> Called:
    return room.runtime.activities.perform("activity:t:1", "mail", payload)


def _create(room: ActingRoom, payload: JsonObject) -> Called:
    return room.runtime.schedules.create(ScheduleSpec("every", "60", payload=payload))


def _change(room: ActingRoom, payload: JsonObject) -> Called:
    room.run(room.runtime.schedules.create(ScheduleSpec("every", "60"), "hourly"))
    changed = ScheduleSpec("every", "60", payload=payload)
    return room.runtime.schedules.change("hourly", changed)


def _kept(room: ActingRoom) -> list[object]:
    """Return the payloads of all triggers, and the arguments of all actions."""
    triggers = room.run(room.runtime.triggers.open_rows())
    called = [arguments for _, _, arguments in room.effects.calls]
    return [*(each.payload for each in triggers if isinstance(each, Trigger)), *called]


@pytest.mark.parametrize("call", [_emit, _import, _perform, _create, _change])
@pytest.mark.parametrize("passes", range(2, 5))
def test_payloads_of_the_operator_are_kept_as_they_were_when_the_call_began(
    call: Callable[[ActingRoom, JsonObject], Called], passes: int
) -> None:
    room, _ = acting.opened()
    payload: dict[str, Any] = {"list": []}

    async def changed_meanwhile(calling: Called) -> None:
        task = create_task(calling)
        for _ in range(passes):
            await sleep(0)
        assert not task.done()
        payload["list"].append("changed")
        await task

    room.run(changed_meanwhile(call(room, payload)))
    room.settle()
    assert _kept(room) == [{"list": []}]


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


def test_a_repeated_call_has_the_same_result_although_the_first_one_was_changed() -> None:
    room, ada = opened()
    results: list[Any] = []

    def call(tools: Any) -> None:
        for _ in range(2):
            results.append(tools.call("1", "list_children", {}))
            results[-1]["children"].append("changed")

    during(room, ada, call)
    assert results == [{"children": ["changed"]}] * 2


def test_an_action_and_its_provider_share_no_object() -> None:
    shared: list[Json] = []
    room, ada = acting.opened(Performed("ref", shared))
    given: JsonObject = {"list": []}
    results: list[Any] = []

    async def once() -> None:
        room.provider.hooks.clear()
        tools: Any = room.provider.tools
        for _ in range(2):
            results.append(await tools.perform("1", {"action": "read", "arguments": given}))
            room.effects.calls[0][2]["changed"] = True
            results[-1]["changed"] = True
            shared.append("changed")

    room.provider.hooks["sent"] = once
    room.say(ada, "go")
    assert results == [{"provider_ref": "ref", "result": [], "changed": True}] * 2
    assert given == {"list": []}


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
