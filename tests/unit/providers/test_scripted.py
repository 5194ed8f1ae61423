"""A scripted agent executes the scripts of its messages and ignores everything else."""

from __future__ import annotations

import json

import pytest

from crash_tests.rig.host import simulated_host
from sim.choices import PlainChoices
from sim.world import World
from system.providers.scripted import ScriptedProvider, run_scripts
from tests.unit.providers.recorded_tools import OPENING, RecordedTools, say


def _prompt(*payloads: object) -> str:
    return json.dumps(
        [
            {"message_id": f"m{number}", "payload": payload}
            for number, payload in enumerate(payloads)
        ]
    )


def test_calls_are_made_in_their_order_and_the_answer_contains_their_results() -> None:
    tools = RecordedTools()
    first = {"do": [["poke", {"to": "ann"}], ["list_children", {}]], "say": "done"}
    answer = run_scripts(_prompt(first, "hello", {"do": [["poke", {"to": "bob"}]]}), tools)
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
def test_a_payload_without_a_script_makes_no_calls_and_is_answered_with_valid_text(
    payload: object,
) -> None:
    tools = RecordedTools()
    assert run_scripts(_prompt(payload), tools).encode("utf-8") is not None
    assert tools.calls == []


@pytest.mark.parametrize("prompt", ["", "no json", "{}", "[1, null]", "[" * 100_000])
def test_a_malformed_prompt_is_answered_with_an_empty_text(prompt: str) -> None:
    assert run_scripts(prompt, RecordedTools()) == ""


def test_a_restored_conversation_answers_like_a_new_one() -> None:
    world = World(simulated_host, PlainChoices())
    world.boot()
    provider = ScriptedProvider()
    created = world.loop.run_until_complete(provider.create(OPENING))
    restored = world.loop.run_until_complete(provider.restore(OPENING, created.identity(), b""))
    prompt = _prompt({"do": [["poke", {"to": "ann"}]]})
    assert say(world, created, prompt, "t1") == say(world, restored, prompt, "t1")
    assert world.loop.run_until_complete(provider.identities()) == ()
