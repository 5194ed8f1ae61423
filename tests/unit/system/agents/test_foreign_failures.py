"""Exceptions of providers, routers and actions that no line can hold, or that are no ``Exception``.

Each is a failure of one call, as any other exception is (``docs/runtime.md``, Failures).
"""

from __future__ import annotations

import pytest

from system.foreign import MOST_CHARACTERS, reason_of, shown
from system.ports import Performed, ProviderError
from system.runtime import Options
from tests.unit.system.agents.acting import activities, in_turn, perform
from tests.unit.system.agents.acting import opened as acting_room
from tests.unit.system.agents.emitting import emit, status
from tests.unit.system.agents.foreign_failures import FAILURES, Unprintable
from tests.unit.system.agents.room import Room, opened
from tests.unit.system.agents.test_routing import FakeRouter

EACH = pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)


@EACH
@pytest.mark.parametrize("call", ["send", "sent", "restore"])
def test_a_turn_in_which_the_provider_fails_is_repeated(call: str, failure: BaseException) -> None:
    room, ada = opened()
    if call == "restore":
        room.run(room.runtime.suspend(ada))
    room.provider.fail(call, error=failure)
    room.say(ada, "hello")
    assert room.named("Ada").turns == 0
    assert 0 < len(room.named("Ada").trouble) <= 2 * MOST_CHARACTERS

    room.settle(1)

    assert (room.named("Ada").turns, room.named("Ada").pending) == (1, ())
    room.check_no_failures()


@pytest.mark.parametrize("call", ["create", "restore"])
def test_an_opening_without_a_conversation_is_a_failure(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, ada = opened()
    room.run(room.runtime.suspend(ada))

    async def nothing(*_: object) -> None:
        """Return nothing."""

    with monkeypatch.context() as wrong:
        wrong.setattr(room.provider, call, nothing)
        if call == "create":
            with pytest.raises(ProviderError, match="creating a conversation failed: AttributeErr"):
                room.create("Bob")
        else:
            room.say(ada, "hello")
            assert "restoring a conversation failed: Attribute" in room.named("Ada").trouble

    room.settle(1)
    assert room.named("Ada").turns == (call == "restore")
    assert room.create("Bob")
    room.check_no_failures()


@EACH
def test_a_trigger_about_which_the_router_fails_is_tried_again(failure: BaseException) -> None:
    async def fail() -> object:
        raise failure

    room = Room(Options(router=FakeRouter(fail, "Bob")))
    room.open()
    room.create("Ada")
    room.create("Bob")
    trigger_id = emit(room, None)
    assert status(room, trigger_id) == ("PENDING", 1)

    room.settle(40)

    assert room.named("Bob").turns == 1
    room.check_no_failures()


@EACH
def test_an_action_that_fails_may_have_been_performed(failure: BaseException) -> None:
    async def fail() -> None:
        raise failure

    room, ada = acting_room(fail)
    perform(room, ada)
    (row,) = activities(room)
    assert (row.status, row.attempts) == ("UNCERTAIN", 1)
    assert row.reason == shown(failure)
    room.check_no_failures()


@EACH
def test_a_failure_of_an_action_in_a_turn_is_its_result(failure: BaseException) -> None:
    async def fail() -> None:
        raise failure

    room, ada = acting_room(fail, Performed("ref", None))
    assert in_turn(room, ada) == [{"error": f"action='read' failed: {shown(failure)}"}]
    assert room.named("Ada").turns == 1
    room.check_no_failures()


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_the_end_of_the_process_or_of_a_coroutine_is_no_failure(end: type[BaseException]) -> None:
    room, ada = opened()
    room.provider.fail("sent", error=end())
    with pytest.raises(end):
        room.say(ada, "hello")
    assert room.events(room.session(ada))[-1] == "turn.start"


def test_a_failure_is_shown_as_plain_text_of_bounded_length() -> None:
    assert shown(Unprintable()) == reason_of(Unprintable()) == "<Unprintable>"
    assert shown(10**5000) == "<int>"
    assert shown(b"\xff") == r"b'\xff'"
    assert reason_of(ValueError("a\udcff")) == r"a\udcff"
    assert len(reason_of(ValueError("x" * 1000))) == len(shown("x" * 1000)) == MOST_CHARACTERS
    assert shown("x" * 1000, 3) == "'xx"
