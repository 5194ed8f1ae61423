"""What is outside of the runtime in its machine is told to the shadow, and counted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from crash_tests.rig.host import simulated_host
from crash_tests.rig.provider_faults import ProviderFault
from crash_tests.targets.watched_providers import WatchedConversation, WatchedProviders
from oracles.runtime.shadow_turns import ShadowTurns
from oracles.runtime.violations import LeakedConversation
from sim.choices import PlainChoices
from sim.world import World
from system.ports import Exchange, Opening, ProviderError
from tests.unit.providers.recorded_tools import OPENING, say

SAID = Exchange("[]", "hello")
each_provider = pytest.mark.parametrize("name", ["bare", "caching", "agentic"])


class Noted(ShadowTurns):
    """Writes down what it is told."""

    __slots__ = ("notes",)

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[tuple[Any, ...]] = []

    def record_request(self, *told: Any, **more: Any) -> None:
        self.notes.append(("asked", *told, more["superset"]))

    def record_call(self, *told: Any, **_more: Any) -> None:
        self.notes.append(("called", *told[:-1]))

    def record_answer(self, turn_id: str, response: str) -> None:
        self.notes.append(("answered", turn_id, response))


class Scene:
    """A world with the providers of the machine."""

    def __init__(self) -> None:
        self.world = World(simulated_host, PlainChoices())
        self.world.boot()
        self.turns = Noted()
        self.providers = WatchedProviders(self.turns)

    def opened(self, name: str, opening: Opening = OPENING) -> WatchedConversation:
        create = self.providers.by_name[name].create(opening)
        conversation = self.world.loop.run_until_complete(create)
        assert isinstance(conversation, WatchedConversation)
        return conversation

    def restored(self, name: str, opening: Opening, blob: bytes) -> WatchedConversation:
        restore = self.providers.by_name[name].restore(opening, "", blob)
        conversation = self.world.loop.run_until_complete(restore)
        assert isinstance(conversation, WatchedConversation)
        return conversation


def play(*calls: list[object]) -> str:
    return json.dumps(
        [{"message_id": "m1", "sender": "USER", "kind": "text", "payload": {"do": list(calls)}}]
    )


@each_provider
def test_what_is_asked_called_and_answered_is_told_once_and_in_its_order(name: str) -> None:
    scene = Scene()
    prompt = play(["poke", {"to": "Ada"}])
    answer = say(scene.world, scene.opened(name), prompt, "t1")
    scene.providers.report()
    notes = scene.turns.notes
    assert [note[:2] for note in notes] == [("asked", "t1"), ("called", "t1"), ("answered", "t1")]
    assert notes[0][2:] == (prompt, [], OPENING.key, name == "agentic")
    assert notes[1][3:] == ("poke", {"to": "Ada"}, {"number": 0})
    assert notes[2][2] == answer


def test_what_a_bare_model_is_told_of_the_past_is_told_as_well() -> None:
    scene = Scene()
    say(scene.world, scene.opened("bare", replace(OPENING, history=(SAID,))), play(), "t2")
    assert scene.turns.notes[0][3] == [("[]", "hello")]


@each_provider
def test_a_conversation_is_open_until_it_is_stopped(name: str) -> None:
    scene = Scene()
    scene.providers.boot(slots=2)
    scene.opened(name)
    second = scene.opened(name)
    scene.world.loop.run_until_complete(second.stop())
    second = scene.opened(name)
    scene.providers.check()
    scene.opened(name)
    # It is too late: there was a moment with three.
    scene.world.loop.run_until_complete(second.stop())
    with pytest.raises(LeakedConversation):
        scene.providers.check()


def test_no_conversation_is_open_after_a_boot() -> None:
    scene = Scene()
    scene.providers.boot(slots=1)
    scene.opened("bare")
    scene.providers.boot(slots=1)
    scene.opened("bare")
    scene.providers.check()


def test_the_slots_of_one_provider_are_not_those_of_another() -> None:
    scene = Scene()
    scene.providers.boot(slots=1)
    scene.opened("bare")
    scene.opened("caching")
    scene.providers.check()


def test_a_conversation_that_is_taken_up_again_is_open() -> None:
    scene = Scene()
    scene.providers.boot(slots=0)
    scene.restored("caching", OPENING, b"")
    with pytest.raises(LeakedConversation):
        scene.providers.check()


def test_a_conversation_keeps_its_own_name() -> None:
    scene = Scene()
    name = scene.opened("agentic").identity()
    kept = scene.world.loop.run_until_complete(scene.providers.by_name["agentic"].identities())
    assert name
    assert list(kept) == [name]


@pytest.mark.parametrize("is_written_down", [True, False])
def test_what_was_written_down_is_preferred_to_the_log(is_written_down: bool) -> None:
    scene = Scene()
    first = scene.opened("caching", replace(OPENING, history=(SAID,)))
    blob = scene.world.loop.run_until_complete(first.suspend())
    log = replace(OPENING, history=(Exchange("[]", "the log"),))
    say(scene.world, scene.restored("caching", log, blob * is_written_down), play(), "t2")
    told = "hello" if is_written_down else "the log"
    assert scene.turns.notes[0][3] == [("[]", told)]


def test_a_fault_strikes_until_it_is_lifted() -> None:
    scene = Scene()
    providers, conversation = scene.providers, scene.opened("bare")
    seen = [(providers.has_armed, providers.has_failed)]
    providers.inject(ProviderFault.LOST.value, 2)
    seen.append((providers.has_armed, providers.has_failed))
    with pytest.raises(ProviderError):
        say(scene.world, conversation, play(), "t1")
    seen.append((providers.has_armed, providers.has_failed))
    providers.clear()
    seen.append((providers.has_armed, providers.has_failed))
    say(scene.world, conversation, play(), "t2")
    assert seen == [(False, False), (True, False), (True, True), (False, True)]
