"""The marks of a recovery, found by comparing the snapshots before and after it."""

from __future__ import annotations

import pytest

from oracles.runtime.marks import (
    BOUNCED,
    CONTROL_REDONE,
    DEAD_LETTER,
    LOST_TURN_REPORTED,
    NOTICE_REDONE,
    ORPHAN_REMOVED,
    OUTBOX_REDONE,
    PERMITTED_TURN,
    REDELIVERED,
    REMINDER_AFTER_CRASH,
    SPAWN_REDONE,
    TERMINATION_FINISHED,
    marks_of_recovery,
    marks_of_run,
)
from tests.unit.oracles.runtime.story import Break, Story
from tests.unit.oracles.runtime.team import bounce, lose_turn, poison, run_gated, team


def _without_child(story: Story) -> None:
    del story.logs["idle"], story.records["idle"]


@pytest.mark.parametrize(
    ("undone", "mark"),
    [
        (_without_child, SPAWN_REDONE),
        (lambda s: s.drop("idle", "message.enqueued"), SPAWN_REDONE),
        (lambda s: s.drop("user", "message.enqueued"), OUTBOX_REDONE),
        (lambda s: s.logs["worker"].__delitem__(slice(5, None)), TERMINATION_FINISHED),
        (lambda s: s.drop("idle", "tool.permit_turn"), CONTROL_REDONE),
        (lambda s: s.logs["boss"].__delitem__(slice(8, None)), NOTICE_REDONE),
        (lambda s: s.logs["boss"].__delitem__(slice(9, None)), REMINDER_AFTER_CRASH),
        (lambda s: s.create("orphan"), ORPHAN_REMOVED),
    ],
)
def test_effects_redone_by_recovery_are_marked(undone: Break, mark: str) -> None:
    image = team()
    undone(image)
    reached = marks_of_recovery(image.snapshot(), team().snapshot())
    assert mark in reached


@pytest.mark.parametrize(("redo", "mark"), [(bounce, BOUNCED), (lose_turn, LOST_TURN_REPORTED)])
def test_messages_of_recovery_are_marked(redo: Break, mark: str) -> None:
    story = team()
    redo(story)
    assert marks_of_recovery(team().snapshot(), story.snapshot()) == (mark,)


def test_a_recovery_that_had_nothing_to_do_reaches_no_mark() -> None:
    assert marks_of_recovery(team().snapshot(), team().snapshot()) == ()
    assert marks_of_run(team().snapshot()) == ()


def test_the_logs_of_a_run_show_its_marks() -> None:
    story = team()
    poison(story, 5)
    run_gated(story, 0)
    assert marks_of_run(story.snapshot()) == (REDELIVERED, DEAD_LETTER, PERMITTED_TURN)
    bounced = team()
    bounce(bounced)
    assert marks_of_run(bounced.snapshot()) == (BOUNCED,)
