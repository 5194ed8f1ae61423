"""The laws of messages that the runtime sends: errors, notices, reminders, recovery notices."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from oracles.runtime.violations import LostErrorMessage
from oracles.violation import Phantom, TornRecord
from tests.unit.oracles.runtime.story import NOW_NS, Break, Data, Story, hexed, message
from tests.unit.oracles.runtime.team import (
    Case,
    bounce,
    check_allowed,
    check_case,
    lose_turn,
    poison,
    receive,
    team,
    title_of,
)

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


def fail_bootstrap(story: Story) -> Data:
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
    "a parent was told that its child never began": fail_bootstrap,
    "the operator was told that nobody will read a message": come_back,
    "a reminder was cancelled after it had come": cancel_too_late,
    "a subscription was ended after the notice had come": unsubscribe_too_late,
}


@pytest.mark.parametrize("change", RIGHT.values(), ids=RIGHT.keys())
def test_an_allowed_change_passes(change: Break) -> None:
    check_allowed(change)


def lost(**members: object) -> Mapping[str, object]:
    """Return a change of the payload of a recovery notice."""
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
    record = happen(story)
    assert isinstance(record, dict)
    record.update(changes)
    with pytest.raises(TornRecord, match=r"malformed|another payload"):
        story.settle()


def error_answers_a_message_to_a_living_agent(story: Story) -> None:
    lost_message = message("m8", BOSS, IDLE, "text", 0)
    call = ("send_message", {"to": "idle", "payload": 0}, {"message_id": "m8"})
    story.turn("boss", "t4", "r1", outbox=[lost_message], calls=[call])
    error(story, "boss", "m8", sender=IDLE)


def notice_is_about_another_agent(story: Story) -> None:
    story.terminate("idle", "boot-idle")
    end = {"event": "terminated", "agent_id": IDLE, "name": "idle"}
    subscribe_again(story).update(sender=IDLE, payload=end)


WRONG: tuple[Case, ...] = (
    ("an error answers a message to a living agent", Phantom,
     error_answers_a_message_to_a_living_agent),
    ("an error goes to an agent other than the sender", Phantom,
     lambda s: (come_back(s), error(s, "boss", "m9", sender=IDLE))),
    ("an error comes from an agent other than the recipient", Phantom,
     lambda s: (s.terminate("idle", "boot-idle"), bounce(s).update(sender=IDLE))),
    ("a notice is about another agent", Phantom, notice_is_about_another_agent),
    ("a reminder comes from another agent", Phantom, lambda s: remind_again(s).update(sender=IDLE)),
    ("bootstrap is that of another child", Phantom,
     lambda s: receive(s, "idle", "bootstrap", message_id="boot-worker", payload="be worker")),
    ("bootstrap replies to something", TornRecord,
     lambda s: s.at("idle", "message.enqueued").update(reply_to="m1")),
    ("a dead bootstrap gets no error", LostErrorMessage,
     lambda s: (fail_bootstrap(s), s.logs["boss"].pop())),
    ("the second of two errors is missing", LostErrorMessage,
     lambda s: (poison(s, 5), come_back(s), s.logs["user"].pop())),
)  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=title_of)
def test_a_broken_law_is_reported(case: Case) -> None:
    check_case(case)
