"""Requests, calls and answers of the watched providers are recorded; conversations are counted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from crash_tests.rig.host import simulated_host
from crash_tests.rig.provider_ledger import ProviderFault
from crash_tests.targets.watched_providers import WatchedConversation, WatchedProviders
from oracles.runtime.shadow_turns import ShadowTurns
from oracles.runtime.violations import LeakedConversation
from sim.choices import PlainChoices
from sim.world import World
from system.ports import Exchange, Opening, ProviderError
from tests.unit.providers.recorded_tools import OPENING, say

SAID = Exchange("[]", "hello")
each_provider = pytest.mark.parametrize("name", ["bare", "caching", "agentic"])


class Recorded(ShadowTurns):
    """Keeps the records in their order."""

    __slots__ = ("records",)

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[Any, ...]] = []

    def record_request(self, *values: Any, **named: Any) -> None:
        self.records.append(("request", *values, named["superset"]))

    def record_call(self, *values: Any, **_named: Any) -> None:
        self.records.append(("call", *values[:-1]))

    def record_answer(self, turn_id: str, response: str) -> None:
        self.records.append(("answer", turn_id, response))


class Setting:
    """A world with watched providers."""

    def __init__(self) -> None:
        self.world = World(simulated_host, PlainChoices())
        self.world.boot()
        self.turns = Recorded()
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


def script(*calls: list[object]) -> str:
    return json.dumps(
        [{"message_id": "m1", "sender": "USER", "kind": "text", "payload": {"do": list(calls)}}]
    )


@each_provider
def test_request_call_and_answer_are_recorded_once_and_in_their_order(name: str) -> None:
    setting = Setting()
    prompt = script(["poke", {"to": "Ada"}])
    answer = say(setting.world, setting.opened(name), prompt, "t1")
    setting.providers.record()
    records = setting.turns.records
    assert [record[:2] for record in records] == [
        ("request", "t1"),
        ("call", "t1"),
        ("answer", "t1"),
    ]
    assert records[0][2:] == (prompt, [], OPENING.key, name == "agentic")
    assert records[1][3:] == ("poke", {"to": "Ada"}, {"number": 0})
    assert records[2][2] == answer


def test_history_sent_to_a_bare_model_is_recorded() -> None:
    setting = Setting()
    say(setting.world, setting.opened("bare", replace(OPENING, history=(SAID,))), script(), "t2")
    assert setting.turns.records[0][3] == [("[]", "hello")]


@each_provider
def test_a_conversation_is_open_until_it_is_stopped(name: str) -> None:
    setting = Setting()
    setting.providers.boot(slots=2)
    setting.opened(name)
    second = setting.opened(name)
    setting.world.loop.run_until_complete(second.stop())
    second = setting.opened(name)
    setting.providers.check()
    setting.opened(name)
    # The violation remains: three were open at once.
    setting.world.loop.run_until_complete(second.stop())
    with pytest.raises(LeakedConversation):
        setting.providers.check()


def test_no_conversation_is_open_after_a_boot() -> None:
    setting = Setting()
    setting.providers.boot(slots=1)
    setting.opened("bare")
    setting.providers.boot(slots=1)
    setting.opened("bare")
    setting.providers.check()


def test_the_slots_of_one_provider_are_not_those_of_another() -> None:
    setting = Setting()
    setting.providers.boot(slots=1)
    setting.opened("bare")
    setting.opened("caching")
    setting.providers.check()


def test_a_restored_conversation_is_open() -> None:
    setting = Setting()
    setting.providers.boot(slots=0)
    setting.restored("caching", OPENING, b"")
    with pytest.raises(LeakedConversation):
        setting.providers.check()


def test_a_conversation_keeps_its_own_name() -> None:
    setting = Setting()
    name = setting.opened("agentic").identity()
    kept = setting.world.loop.run_until_complete(setting.providers.by_name["agentic"].identities())
    assert name
    assert list(kept) == [name]


@pytest.mark.parametrize("has_blob", [True, False])
def test_a_blob_is_preferred_to_the_log(has_blob: bool) -> None:
    setting = Setting()
    first = setting.opened("caching", replace(OPENING, history=(SAID,)))
    blob = setting.world.loop.run_until_complete(first.suspend())
    log = replace(OPENING, history=(Exchange("[]", "the log"),))
    say(setting.world, setting.restored("caching", log, blob * has_blob), script(), "t2")
    expected = "hello" if has_blob else "the log"
    assert setting.turns.records[0][3] == [("[]", expected)]


def test_an_injected_fault_fires_until_it_is_cleared() -> None:
    setting = Setting()
    providers, conversation = setting.providers, setting.opened("bare")
    seen = [(providers.has_armed, providers.has_failed)]
    providers.inject(ProviderFault.LOST.value, 2)
    seen.append((providers.has_armed, providers.has_failed))
    with pytest.raises(ProviderError):
        say(setting.world, conversation, script(), "t1")
    seen.append((providers.has_armed, providers.has_failed))
    providers.clear()
    seen.append((providers.has_armed, providers.has_failed))
    say(setting.world, conversation, script(), "t2")
    assert seen == [(False, False), (True, False), (True, True), (False, True)]
