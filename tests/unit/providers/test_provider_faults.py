"""Each fault of a provider does what it says, is counted, and can be lifted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from crash_tests.rig.agent_service import SimulatedAgentService
from crash_tests.rig.host import simulated_host
from crash_tests.rig.provider_faults import ProviderFault
from crash_tests.rig.provider_ledger import ProviderLedger
from sim.choices import PlainChoices
from sim.errors import HarnessError, Stuck
from sim.world import World
from system.ports import Conversation, Exchange, ProviderError
from system.providers.agentic import AgenticProvider
from tests.unit.providers.recorded_tools import OPENING, RecordedTools, brain, say

SECOND_NS = 1_000_000_000
ANSWER = "hi: [{'number': 0}, {'number': 1}]"


class Ground:
    """A world with one conversation at a service."""

    def __init__(self) -> None:
        self.world = World(simulated_host, PlainChoices())
        self.ledger = ProviderLedger()
        self.world.boot()
        self.service = SimulatedAgentService(self.ledger, brain)
        self.tools = RecordedTools()
        self.conversation: Conversation = self.world.loop.run_until_complete(
            AgenticProvider(self.service).create(OPENING)
        )

    def say(self, *faults: ProviderFault) -> str:
        for fault in faults:
            self.ledger.faults.arm(fault)
        return say(self.world, self.conversation, "hi", "t1", self.tools)

    @property
    def remembered(self) -> tuple[Exchange, ...]:
        return self.service.history(self.conversation.identity())


@pytest.fixture
def ground() -> Ground:
    return Ground()


def test_without_a_fault_the_answer_comes_in_pieces_and_others_run_between(ground: Ground) -> None:
    log: list[str] = []

    def heard(word: str) -> None:
        log.extend([word] if word else [])

    async def note(words: AsyncIterator[str]) -> None:
        async for word in words:
            heard(word)

    async def dashes() -> AsyncIterator[str]:
        for _ in range(5):
            await asyncio.sleep(0)
            yield "-"

    async def main() -> None:
        sent = ground.conversation.send("hi", "t1", ground.tools)
        await asyncio.gather(note(sent), note(dashes()))

    ground.world.loop.run_until_complete(main())
    assert "".join(log).replace("-", "") == ANSWER
    assert [word == "-" for word in log] == [True, False, True, False, True, False, True, True]
    assert ground.remembered == (Exchange("hi", ANSWER),)


def test_a_timeout_is_no_answer_ever(ground: Ground) -> None:
    with pytest.raises(Stuck):
        ground.say(ProviderFault.TIMEOUT)
    assert (ground.tools.calls, ground.remembered) == ([], ())


def test_a_broken_stream_has_called_one_tool_and_is_forgotten(ground: Ground) -> None:
    with pytest.raises(ProviderError, match="broke off between"):
        ground.say(ProviderFault.BROKEN)
    assert (len(ground.tools.calls), ground.remembered) == (1, ())


def test_a_broken_stream_of_a_turn_without_tools_has_sent_one_piece(ground: Ground) -> None:
    quiet = SimulatedAgentService(ground.ledger, lambda prompt, tools: "long enough")
    identity = ground.world.loop.run_until_complete(quiet.create(OPENING))
    ground.ledger.faults.arm(ProviderFault.BROKEN)

    async def main() -> None:
        pieces = quiet.send(identity, "hi", "t1", ground.tools)
        assert await anext(pieces) == "long"
        await anext(pieces)

    with pytest.raises(ProviderError, match="after the first piece"):
        ground.world.loop.run_until_complete(main())


def test_a_lost_answer_is_remembered_by_the_service_alone(ground: Ground) -> None:
    with pytest.raises(ProviderError, match="reset"):
        ground.say(ProviderFault.LOST)
    assert ground.remembered == (Exchange("hi", ANSWER),)
    assert [answered.text for answered in ground.ledger.answered] == [ANSWER]


def test_a_duplicate_repeats_the_calls_with_their_ids_and_not_the_text(ground: Ground) -> None:
    assert ground.say(ProviderFault.DUPLICATE) == ANSWER
    assert [call_id for call_id, _, _ in ground.tools.calls] == ["0", "1", "0", "1"]


def test_garbage_calls_nonsense_and_is_no_clean_text(ground: Ground) -> None:
    with pytest.raises(UnicodeEncodeError):
        ground.say(ProviderFault.GARBAGE).encode()
    assert "launch_rockets" in [name for _, name, _ in ground.tools.calls]
    with pytest.raises(TypeError):
        ground.say(ProviderFault.GARBAGE)
    assert ground.remembered == ()


def test_a_slow_answer_takes_minutes_of_virtual_time(ground: Ground) -> None:
    assert ground.say(ProviderFault.SLOW) == ANSWER
    assert ground.world.clock.now_ns >= 240 * SECOND_NS


def test_a_refused_creation_creates_nothing(ground: Ground) -> None:
    ground.ledger.faults.arm(ProviderFault.REFUSED)
    with pytest.raises(ProviderError, match="too many"):
        ground.world.loop.run_until_complete(AgenticProvider(ground.service).create(OPENING))
    assert len(ground.world.loop.run_until_complete(ground.service.conversations())) == 1


def test_a_fault_strikes_as_often_as_it_was_armed_and_is_counted(ground: Ground) -> None:
    faults = ground.ledger.faults
    faults.arm(ProviderFault.DUPLICATE, 2)
    for _ in range(3):
        ground.say()
    assert faults.fired[ProviderFault.DUPLICATE] == 2
    assert faults.armed == {}
    faults.arm(ProviderFault.LOST, 5)
    faults.lift()
    assert ground.say() == ANSWER
    with pytest.raises(HarnessError, match="times=0"):
        faults.arm(ProviderFault.LOST, 0)
