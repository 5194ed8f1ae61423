"""Each fault of a provider has its effect, is counted, and can be cleared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from crash_tests.rig.host import simulated_host
from crash_tests.rig.provider_ledger import ProviderFault, ProviderLedger
from crash_tests.rig.simulated_provider import SimulatedAgentService
from sim.choices import PlainChoices
from sim.errors import HarnessError, Stuck
from sim.world import World
from system.ports import Conversation, Exchange, ProviderError
from system.providers.agentic import AgenticProvider
from tests.unit.providers.recorded_tools import OPENING, RecordedTools, brain, say

SECOND_NS = 1_000_000_000
ANSWER = "hi: [{'number': 0}, {'number': 1}]"


class Setting:
    """A world with one conversation of a service."""

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
def setting() -> Setting:
    return Setting()


def test_without_a_fault_other_tasks_run_between_the_pieces_of_an_answer(setting: Setting) -> None:
    log: list[str] = []

    async def collect(words: AsyncIterator[str]) -> None:
        async for word in words:
            log.extend([word] if word else [])

    async def dashes() -> AsyncIterator[str]:
        for _ in range(5):
            await asyncio.sleep(0)
            yield "-"

    async def main() -> None:
        sent = setting.conversation.send("hi", "t1", setting.tools)
        await asyncio.gather(collect(sent), collect(dashes()))

    setting.world.loop.run_until_complete(main())
    assert "".join(log).replace("-", "") == ANSWER
    assert [word == "-" for word in log] == [True, False, True, False, True, False, True, True]
    assert setting.remembered == (Exchange("hi", ANSWER),)


def test_a_timeout_never_answers(setting: Setting) -> None:
    with pytest.raises(Stuck):
        setting.say(ProviderFault.TIMEOUT)
    assert (setting.tools.calls, setting.remembered) == ([], ())


def test_a_broken_stream_has_called_one_tool_and_is_not_remembered(setting: Setting) -> None:
    with pytest.raises(ProviderError, match="broke off between"):
        setting.say(ProviderFault.BROKEN)
    assert (len(setting.tools.calls), setting.remembered) == (1, ())


def test_a_broken_stream_of_a_turn_without_tools_has_sent_one_piece(setting: Setting) -> None:
    quiet = SimulatedAgentService(setting.ledger, lambda prompt, tools: "long enough")
    identity = setting.world.loop.run_until_complete(quiet.create(OPENING))
    setting.ledger.faults.arm(ProviderFault.BROKEN)

    async def main() -> None:
        pieces = quiet.send(identity, "hi", "t1", setting.tools)
        assert await anext(pieces) == "long"
        await anext(pieces)

    with pytest.raises(ProviderError, match="after the first piece"):
        setting.world.loop.run_until_complete(main())


def test_a_lost_answer_is_remembered_by_the_service_alone(setting: Setting) -> None:
    with pytest.raises(ProviderError, match="reset"):
        setting.say(ProviderFault.LOST)
    assert setting.remembered == (Exchange("hi", ANSWER),)
    assert [answer.text for answer in setting.ledger.answers] == [ANSWER]


def test_a_duplicate_repeats_the_calls_with_their_ids_but_not_the_text(setting: Setting) -> None:
    assert setting.say(ProviderFault.DUPLICATE) == ANSWER
    assert [call_id for call_id, _, _ in setting.tools.calls] == ["0", "1", "0", "1"]


def test_garbage_makes_senseless_calls_and_is_not_valid_text(setting: Setting) -> None:
    with pytest.raises(UnicodeEncodeError):
        setting.say(ProviderFault.GARBAGE).encode()
    assert "launch_rockets" in [name for _, name, _ in setting.tools.calls]
    with pytest.raises(TypeError):
        setting.say(ProviderFault.GARBAGE)
    assert setting.remembered == ()


def test_a_slow_answer_takes_minutes_of_virtual_time(setting: Setting) -> None:
    assert setting.say(ProviderFault.SLOW) == ANSWER
    assert setting.world.clock.now_ns >= 240 * SECOND_NS


def test_a_refused_creation_creates_nothing(setting: Setting) -> None:
    setting.ledger.faults.arm(ProviderFault.REFUSED)
    with pytest.raises(ProviderError, match="too many"):
        setting.world.loop.run_until_complete(AgenticProvider(setting.service).create(OPENING))
    assert len(setting.world.loop.run_until_complete(setting.service.conversations())) == 1


def test_a_fault_fires_as_often_as_it_was_armed_and_is_counted(setting: Setting) -> None:
    faults = setting.ledger.faults
    faults.arm(ProviderFault.DUPLICATE, 2)
    for _ in range(3):
        setting.say()
    assert faults.fired[ProviderFault.DUPLICATE] == 2
    assert faults.armed == {}
    faults.arm(ProviderFault.LOST, 5)
    faults.clear()
    assert setting.say() == ANSWER
    with pytest.raises(HarnessError, match="times=0"):
        faults.arm(ProviderFault.LOST, 0)
