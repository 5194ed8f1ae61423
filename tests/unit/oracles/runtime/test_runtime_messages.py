"""Messages that no agent has written: errors, notices, reminders, and what recovery tells."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from oracles.runtime.violations import LostErrorMessage
from oracles.violation import Phantom, TornRecord, Violation
from tests.unit.oracles.runtime.story import NOW_NS, Break, Data, Story, hexed, message
from tests.unit.oracles.runtime.team import Wrong, bounce, lose_turn, name_of, poison, receive, team

WRONG = Wrong()
BOSS, WORKER, IDLE = hexed("a-boss"), hexed("a-worker"), hexed("a-idle")


def subscribe_again(story: Story) -> Data:
    """The boss subscribes to the worker, that has ended meanwhile; return the notice."""
    story.turn(
        "boss", "t4", "r1", subscribed=[{"subscription_id": "s2", "target": WORKER}],
        calls=[("subscribe", {"name": "worker"}, {"subscription_id": "s2"})],
    )  # fmt: skip
    end = {"event": "terminated", "agent_id": WORKER, "name": "worker"}
    return receive(story, "boss", "notice", message_id="s2.notice", sender=WORKER, payload=end)


def remind_again(story: Story) -> Data:
    """The boss asks for another reminder, that comes at once; return it."""
    story.turn(
        "boss", "t4", "r1", reminders=[{"reminder_id": "r2", "due_ns": NOW_NS, "payload": "tock"}],
        calls=[("remind_me", {"delay_ns": 0, "payload": "tock"}, {"reminder_id": "r2"})],
    )  # fmt: skip
    return receive(story, "boss", "reminder", message_id="r2", payload="tock")


def die_unborn(story: Story) -> Data:
    """The idle child fails five times on its instructions; return the error to its parent."""
    for number in range(5):
        story.start("idle", f"p{number}", "boot-idle")
        story.add("idle", "turn.failed", turn_id=f"p{number}", reason="timeout")
    story.add("idle", "message.dead", message_id="boot-idle", reason="too often")
    return error(story, "boss", "boot-idle", sender=IDLE)


def come_back(story: Story) -> Data:
    """The idle child ends before it has read a message of the operator; return the error."""
    story.send("m9", "idle", 1)
    story.terminate("idle", "boot-idle", "m9")
    return error(story, "user", "m9", sender=IDLE)


def error(story: Story, name: str, about: str, sender: str) -> Data:
    payload = {"reason": "it has ended", "message_id": about}
    return receive(
        story, name, "error", message_id=f"{about}.error", sender=sender, reply_to=about,
        payload=payload,
    )  # fmt: skip


def cancel_too_late(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["cancelled"] = ["r1"]
    story.asked["t3"].calls.append(("cancel_reminder", {"reminder_id": "r1"}, {}))


def unsubscribe_too_late(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["unsubscribed"] = ["s1"]
    story.asked["t3"].calls.append(("unsubscribe", {"subscription_id": "s1"}, {}))


RIGHT: dict[str, Break] = {
    "the end of who has ended is told to a late subscriber": subscribe_again,
    "a reminder came": remind_again,
    "a parent was told that its child never began": die_unborn,
    "the operator was told that nobody will read a message": come_back,
    "a reminder was cancelled after it had come": cancel_too_late,
    "a subscription was ended after the notice had come": unsubscribe_too_late,
}


@pytest.mark.parametrize("change", RIGHT.values(), ids=RIGHT.keys())
def test_what_may_happen_is_right(change: Break) -> None:
    story = team()
    change(story)
    story.settle()


def lost(**members: object) -> Mapping[str, object]:
    """Return a change of what a recovery notice says."""
    whole = {"notice": "recovery", "v": 1, "downtime_ns": 7, "lost_turns": ["t4"], "pending": 1}
    return {"payload": whole | members}


@pytest.mark.parametrize(
    ("happen", "changes"),
    [
        (bounce, {"message_id": "m8.fault"}),
        (bounce, {"payload": {"reason": "it has ended", "message_id": "m8", "more": 1}}),
        (bounce, {"payload": {"reason": "it has ended", "message_id": "m1"}}),
        (subscribe_again, {"message_id": "s2"}),
        (subscribe_again, {"payload": {"event": "terminated", "agent_id": WORKER, "name": "x"}}),
        (remind_again, {"payload": "tick"}),
        (lose_turn, {"message_id": "t3.lost"}),
        (lose_turn, {"sender": BOSS}),
        (lose_turn, {"payload": ["t4"]}),
        (lose_turn, lost(lost_turns=[])),
        (lose_turn, lost(more=1)),
        (lose_turn, lost(notice="start")),
        (lose_turn, lost(v=2)),
    ],
)
def test_a_message_of_the_runtime_has_the_form_of_its_kind(
    happen: Break, changes: Mapping[str, object]
) -> None:
    story = team()
    told = happen(story)
    assert isinstance(told, dict)
    told.update(changes)
    with pytest.raises(TornRecord, match=r"malformed|another payload"):
        story.settle()


@WRONG.caught_by(Phantom)
def error_is_about_a_message_to_somebody_who_lives(story: Story) -> None:
    lost_message = message("m8", BOSS, IDLE, "text", 0)
    call = ("send_message", {"to": "idle", "payload": 0}, {"message_id": "m8"})
    story.turn("boss", "t4", "r1", outbox=[lost_message], calls=[call])
    error(story, "boss", "m8", sender=IDLE)


@WRONG.caught_by(Phantom)
def error_goes_to_somebody_who_did_not_send(story: Story) -> None:
    come_back(story)
    error(story, "boss", "m9", sender=IDLE)


@WRONG.caught_by(Phantom)
def error_is_in_the_name_of_somebody_who_was_not_written_to(story: Story) -> None:
    story.terminate("idle", "boot-idle")
    bounce(story)["sender"] = IDLE


@WRONG.caught_by(Phantom)
def notice_is_about_somebody_else(story: Story) -> None:
    story.terminate("idle", "boot-idle")
    end = {"event": "terminated", "agent_id": IDLE, "name": "idle"}
    subscribe_again(story).update(sender=IDLE, payload=end)


@WRONG.caught_by(Phantom)
def reminder_comes_from_somebody_else(story: Story) -> None:
    remind_again(story)["sender"] = IDLE


@WRONG.caught_by(Phantom)
def bootstrap_is_that_of_another_child(story: Story) -> None:
    receive(story, "idle", "bootstrap", message_id="boot-worker", payload="be worker")


@WRONG.caught_by(TornRecord)
def bootstrap_replies_to_something(story: Story) -> None:
    story.at("idle", "message.enqueued")["reply_to"] = "m1"


@WRONG.caught_by(LostErrorMessage)
def parent_is_not_told_that_its_child_never_began(story: Story) -> None:
    die_unborn(story)
    story.logs["boss"].pop()


@WRONG.caught_by(LostErrorMessage)
def operator_is_told_of_one_dead_message_of_two(story: Story) -> None:
    poison(story, 5)
    come_back(story)
    story.logs["user"].pop()


@pytest.mark.parametrize(("change", "violation"), WRONG.stories, ids=name_of)
def test_what_may_not_happen_is_noticed(change: Break, violation: type[Violation]) -> None:
    WRONG.judge(change, violation)
