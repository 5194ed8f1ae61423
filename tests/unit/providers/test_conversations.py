"""What a bare model is sent is the log; what an agentic service knows survives the machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from crash_tests.rig.agent_service import SimulatedAgentService
from crash_tests.rig.host import simulated_host
from crash_tests.rig.provider_faults import ProviderFault
from crash_tests.rig.provider_ledger import ProviderLedger
from crash_tests.rig.simulated_provider import SimulatedModel
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


def test_a_bare_model_is_sent_the_whole_conversation_each_time() -> None:
    world, ledger = _world(), ProviderLedger()
    provider = BareProvider(SimulatedModel(ledger, brain))
    conversation = world.loop.run_until_complete(provider.create(OPENING))
    first = Exchange("one", say(world, conversation, "one", "t1"))
    second = Exchange("two", say(world, conversation, "two", "t2"))
    restored = world.loop.run_until_complete(
        provider.restore(replace(OPENING, history=(first, second)), "", b"lies")
    )
    say(world, restored, "three", "t3")
    assert [(asked.session, asked.key, asked.history) for asked in ledger.asked] == [
        ("s1", "t1", ()),
        ("s1", "t2", (first,)),
        ("s1", "t3", (first, second)),
    ]
    assert [answered.text for answered in ledger.answered][:2] == [
        first.response,
        second.response,
    ]


def test_an_answer_that_breaks_off_is_no_part_of_a_bare_conversation() -> None:
    world, ledger = _world(), ProviderLedger()
    provider = BareProvider(SimulatedModel(ledger, brain))
    conversation = world.loop.run_until_complete(provider.create(OPENING))
    ledger.faults.arm(ProviderFault.LOST)
    with pytest.raises(ProviderError):
        say(world, conversation, "one", "t1")
    say(world, conversation, "two", "t2")
    assert ledger.asked[-1].history == ()


def test_an_agentic_conversation_goes_on_after_the_machine_died() -> None:
    world, ledger = _world(), ProviderLedger()
    service = SimulatedAgentService(ledger, brain)
    provider = AgenticProvider(service)
    conversation = world.loop.run_until_complete(provider.create(OPENING))
    identity = conversation.identity()
    answer = say(world, conversation, "one", "t1")
    world.kill()
    world.boot()
    assert world.loop.run_until_complete(provider.identities()) == [identity]
    restored = world.loop.run_until_complete(provider.restore(OPENING, identity, b""))
    say(world, restored, "two", "t2")
    asked = ledger.asked[-1]
    assert (asked.session, asked.identity, asked.key) == ("s1", identity, "t2")
    assert asked.history == (Exchange("one", answer),)


def test_a_conversation_that_was_asked_for_twice_is_one() -> None:
    world, ledger = _world(), ProviderLedger()
    provider = AgenticProvider(SimulatedAgentService(ledger, brain))
    first = world.loop.run_until_complete(provider.create(OPENING))
    second = world.loop.run_until_complete(provider.create(OPENING))
    other = world.loop.run_until_complete(provider.create(replace(OPENING, key="s2")))
    assert first.identity() == second.identity() != other.identity()


def test_a_conversation_that_was_lost_is_created_anew_from_the_log() -> None:
    world, ledger = _world(), ProviderLedger()
    service = SimulatedAgentService(ledger, brain)
    provider = AgenticProvider(service)
    lost = world.loop.run_until_complete(provider.create(OPENING)).identity()
    ledger.faults.arm(ProviderFault.FORGOTTEN)
    for identity in (lost, lost, ""):
        with pytest.raises(ConversationLost):
            world.loop.run_until_complete(provider.restore(OPENING, identity, b""))
    history = (Exchange("one", "first"),)
    opening = replace(OPENING, history=history)
    again = world.loop.run_until_complete(provider.create(opening)).identity()
    assert again != lost
    assert service.history(again) == history
    assert ledger.faults.fired[ProviderFault.FORGOTTEN] == 1
