"""A bare model gets the history of the log; an agentic service keeps its own across crashes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from crash_tests.rig.host import simulated_host
from crash_tests.rig.provider_ledger import ProviderFault, ProviderLedger
from crash_tests.rig.simulated_provider import SimulatedAgentService, SimulatedModel
from sim.choices import PlainChoices
from sim.world import World
from system.ports import ConversationLost, Exchange, ProviderError
from system.providers.agentic import AgenticProvider
from system.providers.bare import BareProvider
from tests.unit.providers.recorded_tools import OPENING, brain, say


def _world() -> World[Any]:
    world = World(simulated_host, PlainChoices())
    world.boot()
    return world


def test_a_bare_model_is_sent_the_whole_history_each_time() -> None:
    world, ledger = _world(), ProviderLedger()
    provider = BareProvider(SimulatedModel(ledger, brain))
    conversation = world.loop.run_until_complete(provider.create(OPENING))
    first = Exchange("one", say(world, conversation, "one", "t1"))
    second = Exchange("two", say(world, conversation, "two", "t2"))
    restored = world.loop.run_until_complete(
        provider.restore(replace(OPENING, history=(first, second)), "", b"lies")
    )
    say(world, restored, "three", "t3")
    assert [(request.session, request.key, request.history) for request in ledger.requests] == [
        ("s1", "t1", ()),
        ("s1", "t2", (first,)),
        ("s1", "t3", (first, second)),
    ]
    assert [answer.text for answer in ledger.answers][:2] == [first.response, second.response]


def test_a_lost_answer_is_not_part_of_a_bare_conversation() -> None:
    world, ledger = _world(), ProviderLedger()
    provider = BareProvider(SimulatedModel(ledger, brain))
    conversation = world.loop.run_until_complete(provider.create(OPENING))
    ledger.faults.arm(ProviderFault.LOST)
    with pytest.raises(ProviderError):
        say(world, conversation, "one", "t1")
    say(world, conversation, "two", "t2")
    assert ledger.requests[-1].history == ()


def test_an_agentic_conversation_continues_after_a_kill() -> None:
    world, ledger = _world(), ProviderLedger()
    provider = AgenticProvider(SimulatedAgentService(ledger, brain))
    conversation = world.loop.run_until_complete(provider.create(OPENING))
    identity = conversation.identity()
    answer = say(world, conversation, "one", "t1")
    world.kill()
    world.boot()
    assert world.loop.run_until_complete(provider.identities()) == [identity]
    restored = world.loop.run_until_complete(provider.restore(OPENING, identity, b""))
    say(world, restored, "two", "t2")
    request = ledger.requests[-1]
    assert (request.session, request.identity, request.key) == ("s1", identity, "t2")
    assert request.history == (Exchange("one", answer),)


def test_a_conversation_that_is_created_twice_is_one_conversation() -> None:
    world, ledger = _world(), ProviderLedger()
    provider = AgenticProvider(SimulatedAgentService(ledger, brain))
    first = world.loop.run_until_complete(provider.create(OPENING))
    second = world.loop.run_until_complete(provider.create(OPENING))
    other = world.loop.run_until_complete(provider.create(replace(OPENING, key="s2")))
    assert first.identity() == second.identity() != other.identity()


def test_a_lost_conversation_is_created_anew_from_the_log() -> None:
    world, ledger = _world(), ProviderLedger()
    service = SimulatedAgentService(ledger, brain)
    provider = AgenticProvider(service)
    lost = world.loop.run_until_complete(provider.create(OPENING)).identity()
    ledger.faults.arm(ProviderFault.CONVERSATION_LOST)
    for identity in (lost, lost, ""):
        with pytest.raises(ConversationLost):
            world.loop.run_until_complete(provider.restore(OPENING, identity, b""))
    history = (Exchange("one", "first"),)
    opening = replace(OPENING, history=history)
    again = world.loop.run_until_complete(provider.create(opening)).identity()
    assert again != lost
    assert service.history(again) == history
    assert ledger.faults.fired[ProviderFault.CONVERSATION_LOST] == 1
