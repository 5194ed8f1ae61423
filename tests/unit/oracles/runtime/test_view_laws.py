"""The laws of views: running, idle and quiesced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from oracles.runtime.violations import LateReminder, LostMessage
from oracles.violation import LostAck, OutOfSync, Phantom, Starved, Violation
from tests.unit.oracles.runtime.story import NOW_NS, Break, Story, hexed, message
from tests.unit.oracles.runtime.team import team
from tests.unit.oracles.runtime.view import view_of

BOSS, WORKER, IDLE = hexed("a-boss"), hexed("a-worker"), hexed("a-idle")

Changes = Mapping[str, Any]


def ended() -> Story:
    """Return the story in which the operator ended the idle child, that had a permit left."""
    story = team()
    story.terminate("idle", "boot-idle")
    return story


@pytest.mark.parametrize(
    "changes",
    [
        {"worker": {"gated": True}},
        {"idle": {"permits": 0}},
        {"idle": {"pending": ()}},
        {"boss": {"stopped": "EIO", "name": "chef", "turns": 1, "last_turns": ("t1",)}},
    ],
)
def test_idle_neither_the_ended_are_ready_to_run_nor_the_stopped_up_to_date(
    changes: Changes,
) -> None:
    story = ended()
    snapshot = story.snapshot()
    story.settle().check_view(view_of(snapshot, **changes), snapshot, idle=True)


def test_idle_no_permit_outlives_its_gate() -> None:
    story = team()
    control = {"control_id": "c3", "target": IDLE, "op": "ungate"}
    story.turn("boss", "t4", "r1", controls=[control], calls=[("ungate", {"name": "idle"}, {})])
    story.add("idle", "tool.ungate", control_id="c3", by=BOSS)
    snapshot = story.snapshot()
    story.settle().check_view(view_of(snapshot, idle={"permits": 0}), snapshot, idle=True)


def test_idle_a_view_may_forget_who_has_ended() -> None:
    story = team()
    snapshot = story.snapshot()
    story.settle().check_view(view_of(snapshot, hidden=("worker",)), snapshot, idle=True)


def test_idle_a_view_does_not_show_what_user_has_acknowledged() -> None:
    story = team()
    story.add("user", "message.delivered", message_id="m6")
    snapshot = story.snapshot()
    shadow = team().shadow()
    shadow.check_view(view_of(snapshot, user=()), snapshot, idle=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"boss": {"agent_id": "nobody"}},
        {"boss": {"stopped": "EIO", "pending": ("m99",)}},
    ],
)
def test_idle_a_view_invents_nothing(changes: Changes) -> None:
    story = team()
    snapshot = story.snapshot()
    with pytest.raises(Phantom):
        story.settle().check_view(view_of(snapshot, **changes), snapshot, idle=True)


def test_a_violation_names_what_the_view_shows_otherwise() -> None:
    story = team()
    snapshot = story.snapshot()
    view = view_of(snapshot, boss={"name": "chef", "pending": ()})
    with pytest.raises(OutOfSync, match="differs from the log of the agent in name, pending "):
        story.settle().check_view(view, snapshot, idle=True)


def test_a_view_of_what_was_damaged_is_not_compared() -> None:
    story = team()
    shadow = story.shadow()
    for session_id in (hexed("boss"), hexed("worker"), hexed("idle"), "user"):
        shadow.excuse(session_id)
    snapshot = story.snapshot()
    view = view_of(
        snapshot,
        hidden=("idle",),
        user=(),
        boss={"turns": 1, "last_turns": ("t3",)},
        worker={"agent_id": "nobody"},
    )
    shadow.check_view(view, snapshot, idle=False)
    shadow.check_view(view, snapshot, idle=True)
    shadow.check_quiesced(view, snapshot, NOW_NS)


def _sends(story: Story) -> None:
    note = message("m9", BOSS, IDLE, "text", "hey")
    call = ("send_message", {"to": "idle", "payload": "hey"}, {"message_id": "m9"})
    story.turn("boss", "t4", "r1", outbox=[note], calls=[call])


def _forgets_its_reminder(story: Story) -> None:
    story.drop("boss", "message.enqueued", 4)


def _is_not_run(story: Story) -> None:
    story.terminate("idle", "boot-idle")


def _says_what_nobody_asked(story: Story) -> None:
    story.add("boss", "message.enqueued", **message("m9", IDLE, BOSS, "text", 0))


@pytest.mark.parametrize(
    ("change", "violation"),
    [
        (_sends, LostMessage),
        (_forgets_its_reminder, LateReminder),
        (_is_not_run, Starved),
        (_says_what_nobody_asked, Phantom),
    ],
)
def test_quiesced_all_accepted_work_is_done(change: Break, violation: type[Violation]) -> None:
    story = team()
    change(story)
    snapshot = story.snapshot()
    with pytest.raises(Violation) as caught:
        story.shadow().check_quiesced(view_of(snapshot), snapshot, NOW_NS)
    assert type(caught.value) is violation, str(caught.value)


def test_what_a_view_has_shown_is_there() -> None:
    story = team()
    shadow = story.shadow()
    shadow.observe(view_of(story.snapshot()))
    shadow.check(story.snapshot())


def test_an_end_that_a_view_has_shown_is_durable() -> None:
    shadow = team().shadow()
    shadow.observe(view_of(ended().snapshot()))
    with pytest.raises(LostAck, match="an end that a view showed"):
        shadow._check_shown(team().snapshot())


def test_a_message_to_user_that_a_view_has_shown_is_durable() -> None:
    story = team()
    shadow = story.shadow()
    shadow.observe(view_of(story.snapshot()))
    story.drop("user", "message.enqueued")
    with pytest.raises(LostAck, match="a message that a view showed"):
        shadow.check(story.snapshot())
