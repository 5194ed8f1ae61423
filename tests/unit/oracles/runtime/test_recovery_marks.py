"""What a recovery did is seen by comparing what it found with what it left."""

from __future__ import annotations

import pytest

from oracles.marks import Mark
from oracles.runtime.recovery_marks import marks_of_recovery, marks_of_run
from tests.unit.oracles.runtime.story import Break, Story
from tests.unit.oracles.runtime.team import bounce, lose_turn, poison, run_gated, team


def _without_child(story: Story) -> None:
    del story.logs["idle"], story.records["idle"]


@pytest.mark.parametrize(
    ("undone", "mark"),
    [
        (_without_child, Mark.SPAWN_REDONE),
        (lambda s: s.drop("idle", "message.enqueued"), Mark.SPAWN_REDONE),
        (lambda s: s.drop("user", "message.enqueued"), Mark.OUTBOX_REDONE),
        (lambda s: s.logs["worker"].__delitem__(slice(5, None)), Mark.TERMINATION_FINISHED),
        (lambda s: s.drop("idle", "tool.permit_turn"), Mark.CONTROL_REDONE),
        (lambda s: s.logs["boss"].__delitem__(slice(8, None)), Mark.NOTICE_REDONE),
        (lambda s: s.logs["boss"].__delitem__(slice(9, None)), Mark.REMINDER_AFTER_CRASH),
        (lambda s: s.create("orphan"), Mark.ORPHAN_REMOVED),
    ],
)
def test_what_recovery_redid_is_marked(undone: Break, mark: Mark) -> None:
    image = team()
    undone(image)
    reached = marks_of_recovery(image.seen(), team().seen())
    assert mark in reached


@pytest.mark.parametrize(
    ("redo", "mark"), [(bounce, Mark.BOUNCED), (lose_turn, Mark.LOST_TURN_TOLD)]
)
def test_what_recovery_told_is_marked(redo: Break, mark: Mark) -> None:
    story = team()
    redo(story)
    assert marks_of_recovery(team().seen(), story.seen()) == (mark,)


def test_a_recovery_that_had_nothing_to_do_reaches_no_mark() -> None:
    assert marks_of_recovery(team().seen(), team().seen()) == ()
    assert marks_of_run(team().seen()) == ()


def test_what_the_logs_tell_of_a_run_is_marked() -> None:
    story = team()
    poison(story, 5)
    bounce(story)
    run_gated(story, 0)
    assert marks_of_run(story.seen()) == (
        Mark.REDELIVERED,
        Mark.DEAD_LETTER,
        Mark.BOUNCED,
        Mark.PERMITTED_TURN,
    )
