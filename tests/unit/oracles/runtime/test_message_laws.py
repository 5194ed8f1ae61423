"""The laws of messages and promises: nothing invented, nothing forgotten, nothing changed."""

from __future__ import annotations

import pytest

from oracles.runtime.delivery_laws import check_reminders
from oracles.runtime.violations import (
    EarlyReminder,
    ForbiddenControl,
    ForbiddenRecipient,
    LateReminder,
    LostControl,
    LostErrorMessage,
    LostMessage,
    LostNotice,
    LostSpawn,
    UnreportedTurnLoss,
)
from oracles.violation import Phantom, Reordered, Resurrected, TornRecord, Violation
from tests.unit.oracles.runtime.story import NOW_NS, Break, Story, hexed, message
from tests.unit.oracles.runtime.team import Wrong, bounce, lose_turn, name_of, poison, receive, team

WRONG = Wrong()
BOSS, WORKER, IDLE = hexed("a-boss"), hexed("a-worker"), hexed("a-idle")


@WRONG.caught_by(Phantom)
def child_is_there_that_nobody_spawned(story: Story) -> None:
    story.create("cuckoo", parent="boss")


@WRONG.caught_by(Phantom)
def message_is_there_that_nobody_sent(story: Story) -> None:
    receive(story, "boss", "text", sender=IDLE)


@WRONG.caught_by(Phantom)
def bootstrap_is_there_that_no_spawn_demands(story: Story) -> None:
    receive(story, "idle", "bootstrap")


@WRONG.caught_by(Phantom)
def notice_is_there_that_nobody_subscribed_to(story: Story) -> None:
    receive(story, "boss", "notice", sender=WORKER)


@WRONG.caught_by(Phantom)
def notice_tells_an_end_that_is_none(story: Story) -> None:
    subscribed = story.at("boss", "turn.complete")["subscribed"][0]
    subscribed["target"] = story.at("boss", "message.enqueued", 3)["sender"] = IDLE


@WRONG.caught_by(Phantom)
def reminder_is_there_that_nobody_asked_for(story: Story) -> None:
    receive(story, "boss", "reminder")


@WRONG.caught_by(Phantom)
def error_is_there_about_a_message_that_arrived(story: Story) -> None:
    receive(
        story, "boss", "error", message_id="m3.error", sender=WORKER, reply_to="m3",
        payload={"reason": "it has ended", "message_id": "m3"},
    )  # fmt: skip


@WRONG.caught_by(Phantom)
def turn_is_told_to_be_lost_that_is_committed(story: Story) -> None:
    notice = lose_turn(story)
    notice["payload"]["lost_turns"] = ["t3"]
    notice["message_id"] = "t3.lost"


@WRONG.caught_by(Phantom)
def turn_writes_in_the_name_of_another(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["outbox"][0]["sender"] = IDLE


@WRONG.caught_by(TornRecord)
def payload_is_changed_on_its_way(story: Story) -> None:
    story.at("worker", "message.enqueued", 1)["payload"] = {"n": 9}


@WRONG.caught_by(TornRecord)
def metadata_is_lost_on_its_way(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["outbox"][0]["metadata"] = {"trace": "7"}


@WRONG.caught_by(TornRecord)
def notice_names_another_agent(story: Story) -> None:
    story.at("boss", "message.enqueued", 3)["payload"]["name"] = "idle"


@WRONG.caught_by(TornRecord)
def reminder_has_another_payload(story: Story) -> None:
    story.at("boss", "message.enqueued", 4)["payload"] = "tock"


@WRONG.caught_by(TornRecord)
def bootstrap_has_other_instructions(story: Story) -> None:
    story.at("idle", "message.enqueued")["payload"] = "be somebody"


@WRONG.caught_by(TornRecord)
def child_has_other_instructions(story: Story) -> None:
    story.at("idle", "agent.created")["instructions"] = "be somebody"


@WRONG.caught_by(TornRecord)
def gate_arrives_as_its_opposite(story: Story) -> None:
    story.logs["idle"][3].event = "tool.ungate"


@WRONG.caught_by(ForbiddenRecipient)
def child_writes_to_a_stranger(story: Story) -> None:
    story.root("other")
    note = message("m9", WORKER, hexed("a-other"), "text", 0)
    story.at("worker", "turn.complete")["outbox"].insert(0, note)
    story.add("other", "message.enqueued", **note)


@WRONG.caught_by(ForbiddenRecipient)
def child_writes_to_user(story: Story) -> None:
    note = message("m9", WORKER, "USER", "text", 0)
    story.at("worker", "turn.complete")["outbox"].insert(0, note)
    story.add("user", "message.enqueued", **note)


@WRONG.caught_by(ForbiddenControl)
def child_is_gated_by_nobody(story: Story) -> None:
    story.add("idle", "tool.gate", control_id="c9", by=BOSS)


@WRONG.caught_by(Reordered)
def messages_of_one_sender_overtake_each_other(story: Story) -> None:
    first, second = (story.at("worker", "message.enqueued", n) for n in (1, 2))
    first["message_id"], second["message_id"] = "m4", "m3"
    first["payload"], second["payload"] = second["payload"], first["payload"]
    for event in ("turn.start", "turn.complete"):
        story.at("worker", event)["presented"] = ["boot-worker", "m4", "m3"]


@WRONG.caught_by(Reordered)
def controls_overtake_each_other(story: Story) -> None:
    story.move("idle", "tool.permit_turn", 0, 3)


@WRONG.caught_by(Reordered)
def child_gets_something_before_its_bootstrap(story: Story) -> None:
    story.send("m9", "idle", 1)
    story.move("idle", "message.enqueued", 1, 2)


@WRONG.caught_by(LostMessage)
def sent_message_is_nowhere(story: Story) -> None:
    story.drop("user", "message.enqueued")


@WRONG.caught_by(LostSpawn)
def spawned_child_is_nowhere(story: Story) -> None:
    del story.logs["idle"], story.records["idle"]


@WRONG.caught_by(LostSpawn)
def spawned_child_has_no_bootstrap(story: Story) -> None:
    story.drop("idle", "message.enqueued")


@WRONG.caught_by(LostControl)
def permit_is_nowhere(story: Story) -> None:
    story.drop("idle", "tool.permit_turn")


@WRONG.caught_by(LostErrorMessage)
def sender_is_not_told_that_the_recipient_has_ended(story: Story) -> None:
    bounce(story)
    story.logs["boss"].pop()


@WRONG.caught_by(LostErrorMessage)
def operator_is_not_told_of_a_dead_message(story: Story) -> None:
    poison(story, 5)
    story.logs["user"].pop()


@WRONG.caught_by(LostErrorMessage)
def operator_is_not_told_of_a_returned_message(story: Story) -> None:
    story.send("m9", "idle", 1)
    story.terminate("idle", "boot-idle", "m9")


@WRONG.caught_by(LostNotice)
def subscriber_is_not_told(story: Story) -> None:
    story.drop("boss", "message.enqueued", 3)
    for event in ("turn.start", "turn.complete"):
        story.at("boss", event, 1)["presented"] = ["m2", "m5"]
    story.logs["boss"].pop()


@WRONG.caught_by(UnreportedTurnLoss)
def agent_is_not_told_of_its_lost_turn(story: Story) -> None:
    lose_turn(story)
    story.logs["boss"].pop()


@WRONG.caught_by(EarlyReminder)
def reminder_comes_before_it_is_due(story: Story) -> None:
    story.at("boss", "turn.complete")["reminders"][0]["due_ns"] = NOW_NS + 1


@WRONG.caught_by(Resurrected)
def cancelled_reminder_comes(story: Story) -> None:
    story.drop("boss", "message.enqueued", 4)
    story.at("boss", "turn.complete", 1)["cancelled"] = ["r1"]
    receive(story, "boss", "reminder", message_id="r1", payload="tick")


@WRONG.caught_by(Resurrected)
def notice_comes_after_its_subscription_has_gone(story: Story) -> None:
    story.at("boss", "turn.complete")["unsubscribed"] = ["s1"]


@WRONG.caught_by(Phantom)
def turn_sends_what_only_the_runtime_may_send(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["outbox"][0]["kind"] = "system"


@WRONG.caught_by(Phantom)
def message_is_of_an_agent_that_is_not_there(story: Story) -> None:
    receive(story, "boss", "text", sender=hexed("a-nobody"))


@WRONG.caught_by(Phantom)
def error_is_there_that_nobody_is_owed(story: Story) -> None:
    story.terminate("idle", "boot-idle")
    receive(
        story, "boss", "error", message_id="boot-idle.error", sender=IDLE, reply_to="boot-idle",
        payload={"reason": "it has ended", "message_id": "boot-idle"},
    )  # fmt: skip


@WRONG.caught_by(TornRecord)
def error_is_not_of_its_form(story: Story) -> None:
    bounce(story)["payload"] = "it has ended"


@WRONG.caught_by(TornRecord)
def recovery_notice_is_not_of_its_form(story: Story) -> None:
    lose_turn(story)["payload"]["v"] = 2


@WRONG.caught_by(ForbiddenRecipient)
def message_goes_to_somebody_who_never_was(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["outbox"][0]["recipient"] = hexed("a-nobody")
    story.drop("user", "message.enqueued")


@WRONG.caught_by(ForbiddenRecipient)
def response_goes_to_a_sibling(story: Story) -> None:
    story.at("worker", "turn.complete")["outbox"][0]["recipient"] = IDLE


@WRONG.caught_by(ForbiddenRecipient)
def agent_writes_to_itself(story: Story) -> None:
    note = message("m9", WORKER, WORKER, "text", 0)
    story.at("worker", "turn.complete")["outbox"].insert(0, note)


@WRONG.caught_by(ForbiddenRecipient)
def root_writes_to_a_root(story: Story) -> None:
    story.root("other")
    note = message("m9", BOSS, hexed("a-other"), "text", 0)
    story.at("boss", "turn.complete", 1)["outbox"].append(note)
    story.add("other", "message.enqueued", **note)


@WRONG.caught_by(ForbiddenControl)
def child_is_gated_by_what_was_for_its_sibling(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["controls"][0]["target"] = WORKER


@WRONG.caught_by(ForbiddenControl)
def child_is_gated_by_a_stranger(story: Story) -> None:
    story.root("other")
    story.send("m9", "other", 0)
    story.turn(
        "other", "t9", "m9", calls=[("gate", {"name": "idle"}, {})],
        controls=[{"control_id": "c9", "target": IDLE, "op": "gate"}],
    )  # fmt: skip
    story.add("idle", "tool.gate", control_id="c9", by=hexed("a-other"))


@WRONG.caught_by(ForbiddenControl)
def child_is_gated_by_who_never_was(story: Story) -> None:
    story.add("idle", "tool.gate", control_id="c9", by=hexed("a-nobody"))


@WRONG.caught_by(ForbiddenControl)
def turn_gates_somebody_who_never_was(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["controls"][0]["target"] = hexed("a-nobody")
    story.drop("idle", "tool.gate")


@WRONG.caught_by(TornRecord)
def child_has_another_provider(story: Story) -> None:
    story.at("idle", "session.created")["provider"] = "other"


def write_to_a_sibling(story: Story) -> None:
    note = message("m9", WORKER, IDLE, "text", 0)
    story.at("worker", "turn.complete")["outbox"].insert(0, note)
    call = ("send_message", {"to": "idle", "payload": 0}, {"message_id": "m9"})
    story.asked["t2"].calls.insert(0, call)
    story.add("idle", "message.enqueued", **note)


def end_before_a_permit(story: Story) -> None:
    story.drop("idle", "tool.permit_turn")
    story.terminate("idle", "boot-idle")


def write_and_end(story: Story) -> None:
    bounce(story)
    story.logs["boss"].pop()
    story.terminate("idle", "boot-idle")
    story.terminate("boss")


def subscribe(story: Story) -> None:
    """The boss subscribes to its idle child."""
    story.turn(
        "boss", "t4", "r1", subscribed=[{"subscription_id": "s2", "target": IDLE}],
        calls=[("subscribe", {"name": "idle"}, {"subscription_id": "s2"})],
    )  # fmt: skip


def subscribe_and_end(story: Story) -> None:
    subscribe(story)
    story.terminate("idle", "boot-idle")
    story.terminate("boss")


def unsubscribe_in_time(story: Story) -> None:
    subscribe(story)
    story.send("m9", "boss", 0)
    story.turn(
        "boss", "t5", "m9", unsubscribed=["s2"],
        calls=[("unsubscribe", {"subscription_id": "s2"}, {})],
    )  # fmt: skip
    story.terminate("idle", "boot-idle")


RIGHT: dict[str, Break] = {
    "a sibling was written to": write_to_a_sibling,
    "an agent ended before a permit came": end_before_a_permit,
    "nobody told an agent of its error that has ended": write_and_end,
    "nobody told a subscriber of an end that has not come": subscribe,
    "nobody told a subscriber that has ended": subscribe_and_end,
    "nobody told a subscriber that has unsubscribed": unsubscribe_in_time,
}


@pytest.mark.parametrize("change", RIGHT.values(), ids=RIGHT.keys())
def test_what_may_happen_is_right(change: Break) -> None:
    story = team()
    change(story)
    story.settle()


@pytest.mark.parametrize(("change", "violation"), WRONG.stories, ids=name_of)
def test_what_may_not_happen_is_noticed(change: Break, violation: type[Violation]) -> None:
    WRONG.judge(change, violation)


def test_a_due_reminder_must_come() -> None:
    story = team()
    story.drop("boss", "message.enqueued", 4)
    check_reminders(story.snapshot(), NOW_NS - 6)
    with pytest.raises(LateReminder):
        check_reminders(story.snapshot(), NOW_NS - 5)
    check_reminders(story.snapshot().excusing([hexed("boss")]), NOW_NS)


def test_a_reminder_that_was_cancelled_or_whose_agent_has_ended_need_not_come() -> None:
    cancelled, ended = team(), team()
    cancelled.drop("boss", "message.enqueued", 4)
    cancelled.at("boss", "turn.complete", 1)["cancelled"] = ["r1"]
    ended.drop("boss", "message.enqueued", 4)
    ended.terminate("boss")
    for story in (cancelled, ended):
        check_reminders(story.snapshot(), NOW_NS)
