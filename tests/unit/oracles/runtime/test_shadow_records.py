"""The records of sessions after acknowledged calls of the operator."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from oracles.runtime.shadow_records import ShadowRecords
from oracles.violation import InvalidState
from tests.unit.oracles.runtime.story import Break, Story, hexed

IDLE = hexed("a-idle")


def idle_story() -> Story:
    story = Story()
    story.root("idle")
    return story


def _state(name: str) -> Break:
    return lambda story: story.records["idle"].update(state=name)


def _message(story: Story) -> None:
    story.send("m1", "idle", "wake up")
    _state("ACTIVE")(story)


@pytest.mark.parametrize(
    ("change", "is_right"),
    [
        (_state("SUSPENDED"), True),
        (_state("TERMINATED"), True),
        (_state("ACTIVE"), False),
        (lambda story: story.records.clear(), False),
        (_message, True),
    ],
    ids=["kept", "ended", "active again", "lost", "active because of a message"],
)
def test_suspended_record_changes_only_after_a_message(change: Break, is_right: bool) -> None:
    story, records = idle_story(), ShadowRecords()
    records.suspended(story.snapshot(), IDLE, turns=0)
    change(story)
    with nullcontext() if is_right else pytest.raises(InvalidState):
        records.check(story.snapshot())


def test_acknowledged_suspension_leaves_no_active_record() -> None:
    story = idle_story()
    _state("ACTIVE")(story)
    with pytest.raises(InvalidState):
        ShadowRecords().suspended(story.snapshot(), IDLE, turns=0)


def test_record_of_an_agent_with_pending_messages_may_be_active_again() -> None:
    story, records = idle_story(), ShadowRecords()
    _message(story)
    records.suspended(story.snapshot(), IDLE, turns=0)
    records.check(story.snapshot())


def test_turn_that_followed_the_suspension_may_have_opened_the_conversation_again() -> None:
    story, records = idle_story(), ShadowRecords()
    story.send("m1", "idle", "start")
    story.turn("idle", "t1", "m1")
    _state("ACTIVE")(story)
    records.suspended(story.snapshot(), IDLE, turns=0)
    records.check(story.snapshot())
    with pytest.raises(InvalidState):
        records.suspended(story.snapshot(), IDLE, turns=1)


def test_suspension_is_forgotten_when_the_line_of_its_last_turn_is_lost() -> None:
    story, records = idle_story(), ShadowRecords()
    story.send("m1", "idle", "start")
    story.turn("idle", "t1", "m1")
    records.suspended(story.snapshot(), IDLE, turns=1)
    story.drop("idle", "turn.complete")
    story.drop("idle", "message.delivered")
    records.check(story.snapshot())
    _state("ACTIVE")(story)
    records.check(story.snapshot())


def test_damage_of_records_excuses_all_suspensions_before_it() -> None:
    story, records = idle_story(), ShadowRecords()
    records.suspended(story.snapshot(), IDLE, turns=0)
    story.records.clear()
    records.forget()
    records.check(story.snapshot())


def test_created_agent_has_a_record() -> None:
    story, records = idle_story(), ShadowRecords()
    records.created(story.snapshot(), IDLE)
    story.records.clear()
    with pytest.raises(InvalidState):
        records.created(story.snapshot(), IDLE)
