"""Answers of providers that are none: looked at before anything is made of them."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from typing import cast

import pytest

from system.agents.provider_state import ProviderState
from system.ports import Opening, ProviderError
from system.runtime import Options
from tests.unit.system.agents.fake_provider import FakeConversation, FakeProvider
from tests.unit.system.agents.room import Room, opened

# -- names of conversations --------------------------------------------------------------


@pytest.mark.parametrize("answer", [None, [7], 3, ["c1", None]])
def test_a_provider_that_lists_no_names_does_not_stop_the_boot(
    answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, ada = opened()
    room.kill()

    async def identities() -> object:
        return answer

    monkeypatch.setattr(room.provider, "identities", identities)
    room.open()

    assert room.runtime.report.leaks == []
    assert room.named("Ada").agent_id == ada


# -- a conversation that never had a name ------------------------------------------------


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
    assert room.named("Ada").turns == 1
    room.check_no_failures()


# -- a conversation that was good --------------------------------------------------------


def of_no_line(_conversation: FakeConversation) -> object:
    return "\ud800"


def of_no_text(_conversation: FakeConversation) -> object:
    return 7


def forgotten(_conversation: FakeConversation) -> object:
    raise KeyError("id")


def cancelled(_self: FakeConversation) -> str:
    raise CancelledError


IDENTITIES = pytest.mark.parametrize("identity", [of_no_line, of_no_text, forgotten, cancelled])


@IDENTITIES
def test_a_turn_whose_conversation_has_lost_its_identity_has_failed_and_is_repeated(
    identity: Callable[[FakeConversation], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    room, ada = opened()
    with monkeypatch.context() as wrong:
        wrong.setattr(FakeConversation, "identity", identity)
        room.say(ada, "hello")
    failed = room.lines(room.session(ada))[-1]
    assert failed.event == "turn.failed"
    assert "identity" in str(failed.data["reason"])
    assert "uncounted" not in failed.data

    room.settle(1)

    assert room.named("Ada").turns == 1
    room.check_no_failures()


@IDENTITIES
def test_a_conversation_that_has_lost_its_identity_is_suspended_under_the_one_it_had(
    identity: Callable[[FakeConversation], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    room, ada = opened()
    monkeypatch.setattr(FakeConversation, "identity", identity)

    room.run(room.runtime.close())

    assert kept(room, ada) == ProviderState("c1")
    room.check_no_failures()


@pytest.mark.parametrize("blob", ["text", None, 7])
def test_a_conversation_that_is_suspended_with_no_bytes_is_kept_without_a_blob(
    blob: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, ada = opened()

    async def suspend(_conversation: FakeConversation) -> object:
        return blob

    monkeypatch.setattr(FakeConversation, "suspend", suspend)
    room.run(room.runtime.close())

    assert room.state(room.session(ada)) == "SUSPENDED"
    assert kept(room, ada) == ProviderState("c1")
    room.check_no_failures()


def kept(room: Room, agent_id: str) -> ProviderState:
    """The conversation in the record."""
    record = room.agent(agent_id).log.record
    assert record is not None
    return ProviderState.of_encoded(record.provider_state_blob)


def test_a_conversation_that_loses_its_identity_at_creation_leaves_no_agent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = Room(Options(slots=1))
    room.open()
    names = iter(["c1"])

    def once(_self: FakeConversation) -> str:
        return next(names, cast("str", 7))

    with monkeypatch.context() as wrong:
        wrong.setattr(FakeConversation, "identity", once)
        with pytest.raises(ProviderError):
            room.create("Ada")

    assert room.run(room.runtime.create_agent("Ada"))
    assert [observe.name for observe in room.runtime.view().agents] == ["Ada"]
