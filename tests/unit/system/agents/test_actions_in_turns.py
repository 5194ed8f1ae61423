"""Actions that may be repeated or taken back: performed in the turn, without a row."""

from __future__ import annotations

from asyncio import sleep

import pytest

from system.ports import EffectRefused, Performed
from tests.unit.system.agents.acting import FLY, in_turn, opened


def test_an_action_that_reads_is_performed_in_the_turn_without_a_row() -> None:
    room, ada = opened(Performed(None, ["blue"]))
    assert in_turn(room, ada, arguments={"at": "sky"}) == [
        {"provider_ref": None, "result": ["blue"]}
    ]
    assert [call[2] for call in room.effects.calls] == [{"at": "sky"}]
    assert not room.exists("state.db")


def test_a_repeated_call_is_made_once() -> None:
    room, ada = opened()
    first, again, other = in_turn(room, ada, "1", "1", "2")
    assert (first, again, other) == ({"provider_ref": "ref", "result": "ok"},) * 3
    assert len(room.effects.calls) == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (EffectRefused("closed"), "closed"),
        (OSError("reset"), "action='read' failed: OSError('reset')"),
        (lambda: sleep(5), "action='read' failed: TimeoutError()"),
        (Performed(None, float("nan")), "is no finite number"),
    ],
)
def test_an_action_that_fails_in_the_turn_is_an_error(answer: Exception, error: str) -> None:
    room, ada = opened(answer)
    results = in_turn(room, ada)
    room.settle(1)
    [result] = results
    assert error in str(result["error"]) or "finite" in str(result["error"])


def test_a_provider_that_can_wait_may_ask_for_any_action() -> None:
    room, ada = opened()
    [result] = in_turn(room, ada, action="mail")
    assert list(result) == ["activity_id"]
    assert [call[0] for call in room.effects.calls] == ["mail"]


def test_arguments_that_no_line_can_hold_reach_no_provider() -> None:
    room, ada = opened()
    [result] = in_turn(room, ada, arguments={"text": "x" * (1 << 20)})
    assert "1048587" in str(result["error"])
    assert room.effects.calls == []


def test_no_action_is_performed_for_a_turn_that_is_over() -> None:
    room, ada = opened()
    in_turn(room, ada)
    tools = room.provider.tools
    assert tools is not None
    over = {"error": "the turn is over; nothing may follow"}
    assert room.run(tools.perform("1", {"action": "read"})) == over
    assert len(room.effects.calls) == 1


def test_an_odd_call_is_refused_as_any_other() -> None:
    room, ada = opened()
    assert in_turn(room, ada, action="fly") == [{"error": FLY}]
