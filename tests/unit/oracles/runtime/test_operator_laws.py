"""The laws of the operator's calls: contents, targets, order and requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from oracles.runtime.shadow_runtime import ShadowRuntime
from oracles.violation import Duplicated, LostAck, Phantom, Reordered, TornRecord
from tests.unit.oracles.runtime.story import NOW_NS, Story, hexed, message
from tests.unit.oracles.runtime.team import team

BOSS, IDLE = hexed("a-boss"), hexed("a-idle")
NEW = ("r-new", "new", "be new", "scripted", "m")


def settle(shadow: ShadowRuntime, story: Story) -> bool:
    return shadow.settle(shadow.read(story.files()), NOW_NS)


@pytest.mark.parametrize(
    "changes", [{"payload": "later"}, {"kind": "poke"}, {"reply_to": "m1"}], ids=str
)
def test_a_message_that_nobody_has_read_is_as_the_operator_sent_it(
    changes: Mapping[str, object],
) -> None:
    story = team()
    story.send("m9", "idle", "soon")
    story.at("idle", "message.enqueued", 1).update(changes)
    with pytest.raises(TornRecord, match="from the one that was sent"):
        story.settle()


def test_a_message_that_was_acknowledged_again_keeps_its_place() -> None:
    story = team()
    shadow = story.shadow()
    for key in ("m8", "m9", "m8"):
        shadow.operator.sends.begin(key, BOSS, 0)
        shadow.operator.sends.acknowledge(key)
    for key in ("m9", "m8"):
        story.add("boss", "message.enqueued", **message(key, "USER", BOSS, "text", 0))
    with pytest.raises(Reordered):
        settle(shadow, story)


def test_an_agent_that_completed_was_not_ended_by_the_operator() -> None:
    story = team()
    shadow = story.shadow()
    shadow.operator.terminations.begin(hexed("a-worker"))
    shadow.operator.terminations.acknowledge(hexed("a-worker"))
    with pytest.raises(LostAck):
        settle(shadow, story)


def test_a_child_claims_no_request() -> None:
    story = team()
    story.at("idle", "agent.created")["request_id"] = "r-idle"
    with pytest.raises(Phantom, match="a child has the request id"):
        story.settle()


def test_the_agent_of_a_request_is_the_one_that_was_acknowledged() -> None:
    story = team()
    shadow = story.shadow()
    shadow.operator.creates.begin(*NEW)
    shadow.operator.acknowledge_create("r-new", hexed("a-other"))
    story.create("new", request="r-new")
    with pytest.raises(Duplicated):
        settle(shadow, story)


def test_the_agent_of_a_request_is_the_one_that_recovery_has_found() -> None:
    story = team()
    shadow = story.shadow()
    shadow.operator.creates.begin(*NEW)
    story.create("new", request="r-new")
    settle(shadow, story)
    shadow.operator.creates.begin(*NEW)
    with pytest.raises(Duplicated):
        shadow.operator.acknowledge_create("r-new", hexed("a-other"))


def test_what_was_asked_for_again_is_in_flight_again() -> None:
    story = team()
    shadow = story.settle()
    for happened in (False, True):
        shadow.operator.sends.begin("m9", BOSS, 0)
        if happened:
            story.add("boss", "message.enqueued", **message("m9", "USER", BOSS, "text", 0))
        assert settle(shadow, story) is happened


def test_what_was_asked_for_again_and_acknowledged_must_be_there() -> None:
    story = team()
    shadow = story.settle()
    for _ in range(2):
        shadow.operator.sends.begin("m9", BOSS, 0)
        settle(shadow, story)
    shadow.operator.sends.begin("m9", BOSS, 0)
    shadow.operator.sends.acknowledge("m9")
    with pytest.raises(LostAck):
        settle(shadow, story)


def test_what_was_acknowledged_is_no_news_of_a_recovery() -> None:
    story = team()
    assert settle(story.shadow(), story) is False


def test_what_was_in_flight_and_has_happened_is_known_from_then_on() -> None:
    story = team()
    shadow = story.settle()
    shadow.operator.sends.begin("m9", BOSS, 0)
    story.add("boss", "message.enqueued", **message("m9", "USER", BOSS, "text", 0))
    assert settle(shadow, story) is True
    assert settle(shadow, story) is False


def test_no_refusal_undoes_what_a_recovery_has_found() -> None:
    story = team()
    shadow = story.settle()
    shadow.operator.sends.begin("m9", BOSS, 0)
    story.add("boss", "message.enqueued", **message("m9", "USER", BOSS, "text", 0))
    settle(shadow, story)
    shadow.operator.sends.refuse("m9")
    settle(shadow, story)
    assert shadow.operator.sends.is_acknowledged("m9")


def _never_sent(shadow: ShadowRuntime) -> None:
    shadow.operator.sends.begin("m9", hexed("a-nobody"), 0)


def _never_ended(shadow: ShadowRuntime) -> None:
    shadow.operator.terminations.begin(hexed("a-nobody"))


@pytest.mark.parametrize("begin", [_never_sent, _never_ended])
def test_a_call_about_an_agent_that_never_was_has_not_happened(
    begin: Callable[[ShadowRuntime], None],
) -> None:
    story = team()
    shadow = story.shadow()
    begin(shadow)
    assert settle(shadow, story) is False
    assert shadow.operator.in_flight == 0
