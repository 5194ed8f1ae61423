"""Bad calls, of the operator and of agents: a typed error with the place and the cure.

The files after a refused call are compared byte for byte with those before it.
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from system.agents import turns
from system.errors import (
    BadName,
    HasChildren,
    NameTaken,
    NotPlainJson,
    PayloadTooLarge,
    UnknownAgent,
    UnknownMessage,
    UnknownProvider,
)
from system.ports import Json
from tests.unit.system.agents.everything import everything
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import Room

PLAIN_CURE = "convert it to plain JSON first, or keep it in a file and pass the name of the file"
LARGE_CURE = "keep it in a file of its own, and send its name"


def nested(levels: int) -> Json:
    value: Json = 0
    for _ in range(levels):
        value = [value]
    return value


# -- calls of the operator ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "error", "reported"),
    [
        ([1, float("nan")], NotPlainJson, r"value\[1\]: nan is not a finite number"),
        ({"a": {1: 2}}, NotPlainJson, r"value\['a'\]: the key 1 is not a str"),
        ("\ud800", NotPlainJson, "value: lone surrogate '.ud800' at character 0"),
        (b"bytes", NotPlainJson, "value: bytes is not plain JSON data"),
        (nested(99), NotPlainJson, r"value(\[0\])+: nested deeper than 96 levels"),
        (10**5000, NotPlainJson, "value: Exceeds the limit .4300 digits.*"),
        ("x" * (1 << 20), PayloadTooLarge, "size_bytes=1048578 is over the limit of 1048576"),
    ],
    ids=["nan", "key", "surrogate", "bytes", "deep", "digits", "large"],
)
def test_a_payload_that_cannot_be_kept_is_refused_and_nothing_is_written(
    room: Room, payload: Json, error: type[Exception], reported: str
) -> None:
    room.open()
    ada = room.create()
    before = everything(room)

    cure = LARGE_CURE if error is PayloadTooLarge else PLAIN_CURE
    with pytest.raises(error, match=f"{reported}; {cure}$"):
        room.run(room.runtime.send(ada, payload))

    assert everything(room) == before


def test_a_refused_call_writes_nothing(room: Room) -> None:
    room.open()
    ada = room.create("Ada")
    room.say(ada, script(("spawn_agent", {"name": "Bob"}), ("spawn_agent", {"name": "Eve"})))
    eve = room.named("Eve").agent_id
    room.run(room.runtime.terminate(eve))
    room.settle()
    runtime, before = room.runtime, everything(room)

    for call, error, reported in [
        (runtime.send("nobody", 1), UnknownAgent, "'nobody': no agent has this id; take the ids"),
        (runtime.send(eve, 1), UnknownAgent, "it has ended; take the ids from view"),
        (runtime.terminate("nobody"), UnknownAgent, "take the ids from view"),
        (runtime.terminate(eve), UnknownAgent, "it has ended; take the ids from view"),
        (runtime.terminate(ada), HasChildren, "let them end first"),
        (runtime.suspend("nobody"), UnknownAgent, "take the ids from view"),
        (runtime.acknowledge("nothing"), UnknownMessage, "see view"),
        (runtime.create_agent("Ada"), NameTaken, "choose another one"),
        (runtime.create_agent("Bob"), NameTaken, "choose another one"),
        (runtime.create_agent(""), BadName, "name='' is not a name .*; choose a text of 1 to 200"),
        (runtime.create_agent("x" * 201), BadName, "'x{200}' is not a name .*; choose a text"),
        (runtime.create_agent("USER"), BadName, "choose a text of 1 to 200 characters, not USER"),
        (runtime.create_agent("\ud800"), NotPlainJson, f"lone surrogate .*; {PLAIN_CURE}"),
        (runtime.create_agent("Kim", provider="x"), UnknownProvider, "known are scripted"),
        (runtime.create_agent("Kim", "x" * (1 << 20)), PayloadTooLarge, LARGE_CURE),
    ]:
        with pytest.raises(error, match=reported):
            room.run(call)

    assert everything(room) == before
    room.check_no_failures()


def test_what_is_no_text_where_a_text_belongs_is_refused_by_name(room: Room) -> None:
    room.open()
    ada = room.create("Ada")
    runtime, before = cast("Any", room.runtime), everything(room)

    for call, error, reported in [
        (runtime.create_agent(5), BadName, "name=5 is not a name for an agent; choose a text"),
        (runtime.create_agent(None), BadName, "name=None is not a name .*; choose a text"),
        (runtime.create_agent(["a"]), BadName, r"name=\['a'\] is not a name .*; choose a text"),
        (runtime.create_agent("Kim", 5), NotPlainJson, f"instructions: 5 is no.*; {PLAIN_CURE}"),
        (runtime.create_agent("Kim", "", []), NotPlainJson, "provider: .. is not a text; convert"),
        (runtime.create_agent("Kim", model=5), NotPlainJson, "model: 5 is not a text; convert"),
        (runtime.create_agent("Kim", request_id=5), NotPlainJson, "request_id: 5 is not a text"),
        (runtime.send(ada, 1, message_id=5), NotPlainJson, "message_id: 5 is not a text; convert"),
        (runtime.send(ada, 1, message_id=b"5"), NotPlainJson, "message_id: b'5' is not a text"),
        (runtime.send([], 1), UnknownAgent, "take the ids from view"),
        (runtime.terminate({}), UnknownAgent, "take the ids from view"),
        (runtime.acknowledge([]), UnknownMessage, "see view"),
    ]:
        with pytest.raises(error, match=reported):
            room.run(call)

    assert everything(room) == before
    room.check_no_failures()


# -- arguments of an agent's tools ---------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("send_message", {"to": "USER", "payload": nested(97)}),
        ("send_message", {"to": "USER", "payload": 1, "reply_to": "\ud800"}),
        ("send_message", {"to": "USER", "payload": 1, "reply_to": "x" * (17 << 20)}),
        ("set_agent_metadata", {"key": "k", "value": nested(98)}),
        ("complete", {"result": nested(97)}),
        ("remind_me", {"delay_ns": 1, "payload": nested(97)}),
        ("remind_me", {"delay_ns": 10**400, "payload": 1}),
        ("remind_me", {"delay_ns": 10**4299, "payload": 1}),
        ("schedule", {"kind": "once", "spec": "2026-01-01\ud80010:00:00"}),
    ],
)
def test_what_no_line_can_hold_is_refused_by_the_tool_and_the_turn_goes_on(
    room: Room, tool: str, arguments: dict[str, Json]
) -> None:
    room.open()
    ada = room.create()

    async def call() -> None:
        assert room.provider.tools is not None
        room.provider.results.append(room.provider.tools.call("1", tool, arguments))

    room.provider.hooks["sent"] = call
    room.say(ada, "hello")

    assert list(room.provider.results[0]) == ["error"]
    assert room.named("Ada").turns == 1
    room.settle(10)
    room.check_no_failures()


@pytest.mark.parametrize("scale", [1_000, pytest.param(1, marks=pytest.mark.stress)])
def test_more_than_one_prompt_can_hold_is_shown_in_several_turns(
    room: Room, monkeypatch: pytest.MonkeyPatch, scale: int
) -> None:
    monkeypatch.setattr(turns, "MOST_PROMPT_BYTES", turns.MOST_PROMPT_BYTES // scale)
    room.open(start=False)
    ada = room.create()
    for number in range(20):
        room.run(room.runtime.send(ada, f"{number} " + "x" * (1_000_000 // scale)))

    room.start()
    room.settle(60)

    assert room.named("Ada").pending == ()
    assert 2 <= len(room.provider.prompts) < 20
    shown = [
        payload for turn in range(len(room.provider.prompts)) for _, payload in room.shown(turn)
    ]
    assert [str(payload).split()[0] for payload in shown] == [str(n) for n in range(20)]
    room.check_no_failures()
