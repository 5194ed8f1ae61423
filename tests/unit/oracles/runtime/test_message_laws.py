"""The laws of messages and their delivery."""

from __future__ import annotations

from collections.abc import Callable

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
    PrematureWatermark,
    UnreportedTurnLoss,
)
from oracles.violation import InvalidState, Phantom, Reordered, Resurrected, TornRecord
from tests.unit.oracles.runtime.story import NOW_NS, Break, Story, hexed, message
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


def notice_says_that_a_living_agent_has_ended(story: Story) -> None:
    subscribed = story.at("boss", "turn.complete")["subscribed"][0]
    subscribed["target"] = story.at("boss", "message.enqueued", 3)["sender"] = IDLE


def error_answers_a_message_that_arrived(story: Story) -> None:
    receive(
        story, "boss", "error", message_id="m3.error", sender=WORKER, reply_to="m3",
        payload={"reason": "it has ended", "message_id": "m3"},
    )  # fmt: skip


def recovery_notice_names_a_committed_turn(story: Story) -> None:
    notice = lose_turn(story)
    notice["payload"]["lost_turns"] = ["t3"]
    notice["message_id"] = "t3.lost"


def gate_arrives_as_its_opposite(story: Story) -> None:
    story.logs["idle"][3].event = "tool.ungate"


def child_writes_to_an_unrelated_agent(story: Story) -> None:
    story.root("other")
    note = message("m9", WORKER, hexed("a-other"), "text", 0)
    story.at("worker", "turn.complete")["outbox"].insert(0, note)
    story.add("other", "message.enqueued", **note)


def child_writes_to_user(story: Story) -> None:
    note = message("m9", WORKER, "USER", "text", 0)
    story.at("worker", "turn.complete")["outbox"].insert(0, note)
    story.add("user", "message.enqueued", **note)


def messages_of_one_sender_overtake_each_other(story: Story) -> None:
    first, second = (story.at("worker", "message.enqueued", n) for n in (1, 2))
    first["message_id"], second["message_id"] = "m4", "m3"
    first["payload"], second["payload"] = second["payload"], first["payload"]
    for event in ("turn.start", "turn.complete"):
        story.at("worker", event)["presented"] = ["boot-worker", "m4", "m3"]


def spawned_child_is_lost(story: Story) -> None:
    del story.logs["idle"], story.records["idle"]


def passed(story: Story, change: Callable[[], object]) -> None:
    """A turn of the boss says that all outboxes so far are dispatched; then something is lost."""
    story.turn("boss", "t4", "r1", dispatched=14)
    change()


def controls_are_lost(story: Story) -> None:
    story.drop("idle", "tool.gate")
    story.drop("idle", "tool.permit_turn")


def watermark_goes_back(story: Story) -> None:
    story.turn("boss", "t4", "r1", dispatched=14)
    story.send("m7", "boss", "and then?")
    story.turn("boss", "t5", "m7", dispatched=3)


def subscriber_gets_no_notice(story: Story) -> None:
    story.drop("boss", "message.enqueued", 3)
    for event in ("turn.start", "turn.complete"):
        story.at("boss", event, 1)["presented"] = ["m2", "m5"]
    story.logs["boss"].pop()


def cancelled_reminder_comes(story: Story) -> None:
    story.drop("boss", "message.enqueued", 4)
    story.at("boss", "turn.complete", 1)["cancelled"] = ["r1"]
    receive(story, "boss", "reminder", message_id="r1", payload="tick")


def error_answers_a_returned_bootstrap(story: Story) -> None:
    story.terminate("idle", "boot-idle")
    receive(
        story, "boss", "error", message_id="boot-idle.error", sender=IDLE, reply_to="boot-idle",
        payload={"reason": "it has ended", "message_id": "boot-idle"},
    )  # fmt: skip


def message_goes_to_an_agent_that_never_existed(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["outbox"][0]["recipient"] = hexed("a-nobody")
    story.drop("user", "message.enqueued")


def agent_writes_to_itself(story: Story) -> None:
    note = message("m9", WORKER, WORKER, "text", 0)
    story.at("worker", "turn.complete")["outbox"].insert(0, note)


def root_writes_to_a_root(story: Story) -> None:
    story.root("other")
    note = message("m9", BOSS, hexed("a-other"), "text", 0)
    story.at("boss", "turn.complete", 1)["outbox"].append(note)
    story.add("other", "message.enqueued", **note)


def child_is_gated_by_an_unrelated_agent(story: Story) -> None:
    story.root("other")
    story.send("m9", "other", 0)
    story.turn(
        "other", "t9", "m9", calls=[("gate", {"name": "idle"}, {})],
        controls=[{"control_id": "c9", "target": IDLE, "op": "gate"}],
    )  # fmt: skip
    story.add("idle", "tool.gate", control_id="c9", by=hexed("a-other"))


def turn_gates_an_agent_that_never_existed(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["controls"][0]["target"] = hexed("a-nobody")
    story.drop("idle", "tool.gate")


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
def test_an_allowed_change_passes(change: Break) -> None:
    check_allowed(change)


WRONG: tuple[Case, ...] = (
    ("a child exists that was not spawned", Phantom, lambda s: s.create("cuckoo", parent="boss")),
    ("a message exists that was not sent", Phantom,
     lambda s: receive(s, "boss", "text", sender=IDLE)),
    ("a bootstrap exists without a spawn", Phantom, lambda s: receive(s, "idle", "bootstrap")),
    ("a notice exists without a subscription", Phantom,
     lambda s: receive(s, "boss", "notice", sender=WORKER)),
    ("a notice says that a living agent has ended", Phantom,
     notice_says_that_a_living_agent_has_ended),
    ("a reminder exists that was not set", Phantom, lambda s: receive(s, "boss", "reminder")),
    ("an error answers a message that arrived", Phantom, error_answers_a_message_that_arrived),
    ("a recovery notice names a committed turn", Phantom, recovery_notice_names_a_committed_turn),
    ("turn writes in the name of another", Phantom,
     lambda s: s.at("boss", "turn.complete", 1)["outbox"][0].update(sender=IDLE)),
    ("payload is changed on its way", TornRecord,
     lambda s: s.at("worker", "message.enqueued", 1).update(payload={"n": 9})),
    ("metadata is lost on its way", TornRecord,
     lambda s: s.at("boss", "turn.complete", 1)["outbox"][0].update(metadata={"trace": "7"})),
    ("notice names another agent", TornRecord,
     lambda s: s.at("boss", "message.enqueued", 3)["payload"].update(name="idle")),
    ("reminder has another payload", TornRecord,
     lambda s: s.at("boss", "message.enqueued", 4).update(payload="tock")),
    ("bootstrap has other instructions", TornRecord,
     lambda s: s.at("idle", "message.enqueued").update(payload="be somebody")),
    ("child has other instructions", TornRecord,
     lambda s: s.at("idle", "agent.created").update(instructions="be somebody")),
    ("gate arrives as its opposite", TornRecord, gate_arrives_as_its_opposite),
    ("a child writes to an unrelated agent", ForbiddenRecipient,
     child_writes_to_an_unrelated_agent),
    ("child writes to user", ForbiddenRecipient, child_writes_to_user),
    ("a child is gated without an order", ForbiddenControl,
     lambda s: s.add("idle", "tool.gate", control_id="c9", by=BOSS)),
    ("messages of one sender overtake each other", Reordered,
     messages_of_one_sender_overtake_each_other),
    ("controls overtake each other", Reordered, lambda s: s.move("idle", "tool.permit_turn", 0, 3)),
    ("child gets something before its bootstrap", Reordered,
     lambda s: (s.send("m9", "idle", 1), s.move("idle", "message.enqueued", 1, 2))),
    ("a sent message is lost", LostMessage, lambda s: s.drop("user", "message.enqueued")),
    ("a spawned child is lost", LostSpawn, spawned_child_is_lost),
    ("spawned child has no bootstrap", LostSpawn, lambda s: s.drop("idle", "message.enqueued")),
    ("a watermark is above a control that was not applied", PrematureWatermark,
     lambda s: passed(s, lambda: controls_are_lost(s))),
    ("a watermark is above a child that does not exist", PrematureWatermark,
     lambda s: passed(s, lambda: spawned_child_is_lost(s))),
    ("a watermark goes back", InvalidState, watermark_goes_back),
    ("a permit is lost", LostControl, lambda s: s.drop("idle", "tool.permit_turn")),
    ("an undeliverable message gets no error", LostErrorMessage,
     lambda s: (bounce(s), s.logs["boss"].pop())),
    ("a dead message of the operator gets no error", LostErrorMessage,
     lambda s: (poison(s, 5), s.logs["user"].pop())),
    ("a returned message of the operator gets no error", LostErrorMessage,
     lambda s: (s.send("m9", "idle", 1), s.terminate("idle", "boot-idle", "m9"))),
    ("a subscriber gets no notice", LostNotice, subscriber_gets_no_notice),
    ("no recovery notice names a lost turn", UnreportedTurnLoss,
     lambda s: (lose_turn(s), s.logs["boss"].pop())),
    ("reminder comes before it is due", EarlyReminder,
     lambda s: s.at("boss", "turn.complete")["reminders"][0].update(due_ns=NOW_NS + 1)),
    ("cancelled reminder comes", Resurrected, cancelled_reminder_comes),
    ("notice comes after its subscription has gone", Resurrected,
     lambda s: s.at("boss", "turn.complete").update(unsubscribed=["s1"])),
    ("turn sends what only the runtime may send", Phantom,
     lambda s: s.at("boss", "turn.complete", 1)["outbox"][0].update(kind="system")),
    ("the sender of a message does not exist", Phantom,
     lambda s: receive(s, "boss", "text", sender=hexed("a-nobody"))),
    ("an error answers a returned bootstrap", Phantom, error_answers_a_returned_bootstrap),
    ("error is not of its form", TornRecord, lambda s: bounce(s).update(payload="it has ended")),
    ("recovery notice is not of its form", TornRecord,
     lambda s: lose_turn(s)["payload"].update(v=2)),
    ("a message goes to an agent that never existed", ForbiddenRecipient,
     message_goes_to_an_agent_that_never_existed),
    ("response goes to a sibling", ForbiddenRecipient,
     lambda s: s.at("worker", "turn.complete")["outbox"][0].update(recipient=IDLE)),
    ("agent writes to itself", ForbiddenRecipient, agent_writes_to_itself),
    ("root writes to a root", ForbiddenRecipient, root_writes_to_a_root),
    ("a child applies its sibling's gate", ForbiddenControl,
     lambda s: s.at("boss", "turn.complete", 1)["controls"][0].update(target=WORKER)),
    ("a child is gated by an unrelated agent", ForbiddenControl,
     child_is_gated_by_an_unrelated_agent),
    ("a child is gated by an agent that never existed", ForbiddenControl,
     lambda s: s.add("idle", "tool.gate", control_id="c9", by=hexed("a-nobody"))),
    ("a turn gates an agent that never existed", ForbiddenControl,
     turn_gates_an_agent_that_never_existed),
    ("child has another provider", TornRecord,
     lambda s: s.at("idle", "session.created").update(provider="other")),
)  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=title_of)
def test_a_broken_law_is_reported(case: Case) -> None:
    check_case(case)


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
