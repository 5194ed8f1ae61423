"""A scripted agent does what its messages tell it to, whatever they contain."""

from __future__ import annotations

import json

import pytest

from crash_tests.rig.host import simulated_host
from sim.choices import PlainChoices
from sim.world import World
from system.providers.scripted import ScriptedProvider, play
from tests.unit.providers.recorded_tools import OPENING, RecordedTools, say


def _prompt(*payloads: object) -> str:
    return json.dumps(
        [
            {"message_id": f"m{number}", "payload": payload}
            for number, payload in enumerate(payloads)
        ]
    )


def test_the_calls_are_made_in_their_order_and_the_answer_tells_what_they_gave() -> None:
    tools = RecordedTools()
    first = {"do": [["poke", {"to": "ann"}], ["list_children", {}]], "say": "done"}
    answer = play(_prompt(first, "hello", {"do": [["poke", {"to": "bob"}]]}), tools)
    assert tools.calls == [
        ("0.0", "poke", {"to": "ann"}),
        ("0.1", "list_children", {}),
        ("2.0", "poke", {"to": "bob"}),
    ]
    assert answer.split("\n") == [
        'poke {"number":0}',
        'list_children {"number":1}',
        "done",
        "read m1",
        'poke {"number":2}',
    ]


@pytest.mark.parametrize(
    "payload",
    [None, 7, "", [], {}, {"do": None}, {"do": 3}, {"do": [1, [], ["x"], ["x", []], [{}, {}]]},
     {"do": {"a": 1}, "say": ["no text"]}, {"do": [], "say": "\ud800\x00"}],
)  # fmt: skip
def test_a_payload_that_is_no_play_makes_no_calls_and_is_answered_with_clean_text(
    payload: object,
) -> None:
    tools = RecordedTools()
    assert play(_prompt(payload), tools).encode("utf-8") is not None
    assert tools.calls == []


@pytest.mark.parametrize("prompt", ["", "no json", "{}", "[1, null]", "[" * 100_000])
def test_a_prompt_that_is_none_is_answered_with_nothing(prompt: str) -> None:
    assert play(prompt, RecordedTools()) == ""


def test_a_conversation_can_be_taken_up_anywhere() -> None:
    world = World(simulated_host, PlainChoices())
    world.boot()
    provider = ScriptedProvider()
    created = world.loop.run_until_complete(provider.create(OPENING))
    restored = world.loop.run_until_complete(provider.restore(OPENING, created.identity(), b""))
    prompt = _prompt({"do": [["poke", {"to": "ann"}]]})
    assert say(world, created, prompt, "t1") == say(world, restored, prompt, "t1")
    assert world.loop.run_until_complete(provider.identities()) == ()
