"""Providers that are wrong: whatever they raise or answer is a failure of one call of theirs."""

from __future__ import annotations

import pytest

from system.ports import Opening, ProviderError
from system.runtime import Options
from tests.unit.system.agents.fake_provider import FakeConversation, FakeProvider
from tests.unit.system.agents.room import Room, opened

MISTAKES = pytest.mark.parametrize(
    "mistake",
    [ValueError("no JSON"), ConnectionResetError("reset"), KeyError("choices")],
    ids=["value", "connection", "key"],
)


@MISTAKES
@pytest.mark.parametrize("call", ["send", "sent"])
def test_a_turn_in_which_the_provider_is_wrong_has_failed_and_is_repeated(
    call: str, mistake: Exception
) -> None:
    room, ada = opened()
    room.provider.fail(call, error=mistake)
    room.say(ada, "hello")
    failed = room.lines(room.session(ada))[-1]
    assert failed.event == "turn.failed"
    assert failed.data["reason"] == f"the provider failed: {mistake!r}"

    room.settle(1)

    assert len(room.named("Ada").turns) == 1
    room.calm()


def test_a_message_that_makes_the_provider_go_wrong_dies_as_any_other() -> None:
    room, ada = opened()
    room.provider.fail("sent", 5, KeyError("choices"))
    room.say(ada, "poison")

    room.settle(32)

    assert room.lines(room.session(ada))[-1].event == "message.dead"
    assert [kind for kind, _payload in room.to_user()] == ["error"]
    room.calm()


@MISTAKES
def test_a_conversation_that_cannot_be_taken_up_by_mistake_is_tried_again(
    mistake: Exception,
) -> None:
    room, ada = opened()
    room.run(room.runtime.suspend(ada))
    room.provider.fail("restore", error=mistake)
    room.say(ada, "hello")
    assert room.provider.prompts == []

    room.settle(1)

    assert len(room.named("Ada").turns) == 1
    room.calm()


@MISTAKES
def test_a_creation_in_which_the_provider_is_wrong_leaves_the_name_free(mistake: Exception) -> None:
    room = Room(Options(slots=1))
    room.open()
    room.provider.fail("create", error=mistake)

    with pytest.raises(ProviderError, match="creating a conversation failed"):
        room.create("Ada", request_id="r")

    assert room.create("Ada", request_id="r")
    room.calm()


@MISTAKES
@pytest.mark.parametrize("call", ["suspend", "stop"])
def test_a_runtime_closes_whatever_a_conversation_raises(call: str, mistake: Exception) -> None:
    room = Room()
    room.open()
    agents = [room.create(name) for name in ("Ada", "Bob")]
    room.provider.fail(call, error=mistake)

    room.run(room.runtime.close())

    assert [room.state(room.session(agent_id)) for agent_id in agents] == ["SUSPENDED"] * 2
    room.calm()


@MISTAKES
def test_a_provider_that_cannot_say_what_it_keeps_does_not_stop_the_boot(
    mistake: Exception,
) -> None:
    room, ada = opened()
    room.kill()
    room.provider.fail("identities", error=mistake)

    room.open()

    assert room.runtime.report.leaks == []
    assert room.named("Ada").agent_id == ada


class Unnamed(FakeConversation):
    """Has an identity that no line can hold."""

    def identity(self) -> str:
        return "\ud800"


class Broken(FakeConversation):
    """Does not know its identity."""

    def identity(self) -> str:
        raise KeyError("id")


class Careless(FakeProvider):
    """Its first conversation is of the kind ``first``, the others are good."""

    def __init__(self, first: type[FakeConversation]) -> None:
        super().__init__()
        self.first = first

    async def create(self, opening: Opening) -> FakeConversation:
        conversation = await super().create(opening)
        if len(self.kept) == 1:
            return self.first(self, conversation.identity())
        return conversation


@pytest.mark.parametrize("first", [Unnamed, Broken])
def test_a_conversation_whose_identity_cannot_be_kept_leaves_name_and_slot_free(
    first: type[FakeConversation],
) -> None:
    room = Room(Options(slots=1), {"scripted": Careless(first)})
    room.open()

    with pytest.raises(ProviderError, match="a conversation has no identity"):
        room.create("Ada", request_id="r")

    ada = room.create("Ada", request_id="r")
    room.say(ada, "hello")
    assert len(room.named("Ada").turns) == 1
    room.calm()
