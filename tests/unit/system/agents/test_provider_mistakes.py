"""Providers that are wrong: whatever they raise is a failure of one call of theirs.

A ``CancelledError`` that nobody of the runtime has asked for is a mistake like any other.
Their answers are tested in ``test_provider_answers.py``.
"""

from __future__ import annotations

from asyncio import CancelledError, Event

import pytest

from system.ports import ProviderError
from system.runtime import Options
from tests.unit.system.agents.fake_provider import FakeConversation
from tests.unit.system.agents.foreign_failures import FAILURES
from tests.unit.system.agents.room import Room, opened

COMMON: dict[str, BaseException] = {
    "value": ValueError("no JSON"), "connection": ConnectionResetError("reset"),
    "key": KeyError("choices"), "cancelled": CancelledError(),
}  # fmt: skip
MISTAKES = pytest.mark.parametrize("mistake", COMMON.values(), ids=COMMON)
ALL = {**COMMON, **FAILURES}
ALL_MISTAKES = pytest.mark.parametrize("mistake", ALL.values(), ids=ALL)


@MISTAKES
@pytest.mark.parametrize("call", ["send", "sent"])
def test_a_turn_in_which_the_provider_is_wrong_has_failed_and_is_repeated(
    call: str, mistake: BaseException
) -> None:
    room, ada = opened()
    room.provider.fail(call, error=mistake)
    room.say(ada, "hello")
    failed = room.lines(room.session(ada))[-1]
    assert failed.event == "turn.failed"
    assert failed.data["reason"] == f"the provider failed: {mistake!r}"

    room.settle(1)

    assert room.named("Ada").turns == 1
    room.check_no_failures()


def test_a_message_that_makes_the_provider_go_wrong_dies_as_any_other() -> None:
    room, ada = opened()
    room.provider.fail("sent", 5, KeyError("choices"))
    room.say(ada, "poison")

    room.settle(32)

    assert room.lines(room.session(ada))[-1].event == "message.dead"
    assert [kind for kind, _payload in room.to_user()] == ["error"]
    room.check_no_failures()


@MISTAKES
def test_a_conversation_that_cannot_be_taken_up_by_mistake_is_tried_again(
    mistake: BaseException,
) -> None:
    room, ada = opened()
    room.run(room.runtime.suspend(ada))
    room.provider.fail("restore", error=mistake)
    room.say(ada, "hello")
    assert room.provider.prompts == []

    room.settle(1)

    assert room.named("Ada").turns == 1
    room.check_no_failures()


@ALL_MISTAKES
def test_a_creation_in_which_the_provider_is_wrong_leaves_the_name_free(
    mistake: BaseException,
) -> None:
    room = Room(Options(slots=1))
    room.open()
    room.provider.fail("create", error=mistake)

    with pytest.raises(ProviderError):
        room.create("Ada", request_id="r")

    assert room.create("Ada", request_id="r")
    room.check_no_failures()


@ALL_MISTAKES
@pytest.mark.parametrize("call", ["suspend", "stop"])
def test_a_runtime_closes_whatever_a_conversation_raises(call: str, mistake: BaseException) -> None:
    room = Room()
    room.open()
    agents = [room.create(name) for name in ("Ada", "Bob")]
    room.provider.fail(call, error=mistake)

    room.run(room.runtime.close())

    assert [room.state(room.session(agent_id)) for agent_id in agents] == ["SUSPENDED"] * 2
    room.check_no_failures()


@ALL_MISTAKES
def test_a_provider_that_cannot_say_what_it_keeps_does_not_stop_the_boot(
    mistake: BaseException,
) -> None:
    room, ada = opened()
    room.kill()
    room.provider.fail("identities", error=mistake)

    room.open()

    assert room.runtime.report.leaks == []
    assert room.named("Ada").agent_id == ada


@pytest.mark.parametrize("call", ["send", "restore"])
def test_the_end_of_the_task_that_asks_a_provider_is_no_mistake_of_it(call: str) -> None:
    room, ada = opened()
    room.run(room.runtime.suspend(ada))
    room.provider.hooks[call] = Event().wait
    room.say(ada, "hello")
    turns = room.agent(ada).work.turns.task
    assert turns is not None

    turns.cancel()
    room.settle()

    assert turns.cancelled()
    assert room.named("Ada").trouble == ""
    assert room.named("Ada").pending != ()


def test_a_provider_that_raises_before_it_can_be_waited_for_leaves_the_name_free(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.open()
    with monkeypatch.context() as wrong:
        wrong.setattr(room.provider, "create", refuse)
        with pytest.raises(ProviderError, match="creating a conversation failed: ValueError"):
            room.create("Ada", request_id="r")

    assert room.create("Ada", request_id="r")
    room.check_no_failures()


def test_a_conversation_that_refuses_before_it_can_be_waited_for_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room, ada = opened()
    room.run(room.runtime.suspend(ada))
    with monkeypatch.context() as wrong:
        wrong.setattr(room.provider, "restore", refuse)
        room.say(ada, "hello")
    assert room.named("Ada").trouble.startswith("restoring a conversation failed: ValueError")

    room.settle(1)

    assert room.named("Ada").turns == 1
    room.check_no_failures()


def test_a_list_of_names_that_is_refused_before_it_can_be_waited_for_does_not_stop_the_boot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room, ada = opened()
    room.kill()
    monkeypatch.setattr(room.provider, "identities", refuse)

    room.open()

    assert (room.named("Ada").agent_id, room.runtime.report.leaks) == (ada, [])


@pytest.mark.parametrize("call", ["suspend", "stop"])
def test_a_runtime_closes_though_a_conversation_raises_before_it_can_be_waited_for(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, ada = opened()
    monkeypatch.setattr(FakeConversation, call, refuse)

    room.run(room.runtime.close())

    assert room.state(room.session(ada)) == "SUSPENDED"
    room.check_no_failures()


def refuse(*_arguments: object) -> object:
    raise ValueError("no connection")
