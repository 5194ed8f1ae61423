"""The law of effects: a line contains the effects of its tool calls, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from oracles.runtime.violations import EffectsMismatch
from oracles.violation import Phantom, TornRecord
from tests.unit.oracles.runtime.story import NOW_NS, Story, hexed, message
from tests.unit.oracles.runtime.team import Case, check_case, spawn, spawning, team, title_of

BOSS, WORKER, IDLE = hexed("a-boss"), hexed("a-worker"), hexed("a-idle")


def check_inbox(story: Story) -> Any:
    """The boss looks into its inbox during its last turn."""
    new = {"messages": story.prompt_of("boss", ["r1"])}
    story.asked["t3"].calls.append(("check_inbox", {}, new))
    story.at("boss", "turn.complete", 1)["presented"].append("r1")


def wait(story: Story) -> Any:
    """The boss asks for a reminder and a notice, and takes both back in its next turn."""
    story.turn(
        "boss", "t4", "r1", subscribed=[{"subscription_id": "s2", "target": IDLE}],
        reminders=[{"reminder_id": "r2", "due_ns": NOW_NS + 1, "payload": 0}],
        calls=[
            ("remind_me", {"delay_ns": 1, "payload": 0}, {"reminder_id": "r2"}),
            ("subscribe", {"name": "idle"}, {"subscription_id": "s2"}),
        ],
    )  # fmt: skip
    story.send("m9", "boss", 0)
    story.turn(
        "boss", "t5", "m9", cancelled=["r2"], unsubscribed=["s2"],
        calls=[
            ("cancel_reminder", {"reminder_id": "r2"}, {}),
            ("unsubscribe", {"subscription_id": "s2"}, {}),
        ],
    )  # fmt: skip


def poke(story: Story, to: str, payload: object) -> Any:
    """The boss wants to poke its idle child; ``to`` and ``payload`` are what its line says."""
    note = message("m9", BOSS, to, "poke", payload)
    call = ("poke", {"to": "idle"}, {"message_id": "m9"})
    story.turn("boss", "t4", "r1", outbox=[note], calls=[call])
    story.add("user" if to == "USER" else "idle", "message.enqueued", **note)


def _readdress(story: Story, to: str) -> None:
    story.at("boss", "turn.complete", 1)["outbox"][0]["recipient"] = to
    note = story.drop("user", "message.enqueued").data
    story.add("idle", "message.enqueued", **note | {"recipient": to})


def line_gates_another_child(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["controls"][0]["target"] = WORKER
    story.drop("idle", "tool.gate")


def message_is_sent_as_a_poke(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["outbox"][0]["kind"] = "poke"
    story.at("user", "message.enqueued")["kind"] = "poke"


def poke_is_not_in_the_line(story: Story) -> None:
    poke(story, IDLE, None)
    story.at("boss", "turn.complete", 2)["outbox"].clear()
    story.logs["idle"].pop()


WRONG: tuple[Case, ...] = (
    ("a checked inbox shows other contents", TornRecord,
     lambda s: (check_inbox(s), s.asked["t3"].calls[-1][2]["messages"][0].update(payload="tock"))),
    ("the line spawns a child without a call", EffectsMismatch,
     lambda s: s.asked["t1"].calls.pop(1)),
    ("line gates another child", EffectsMismatch, line_gates_another_child),
    ("line reaches an agent and not user", EffectsMismatch, lambda s: _readdress(s, IDLE)),
    ("line reaches user and not an agent", EffectsMismatch,
     lambda s: s.asked["t3"].calls[-1][1].update(to="idle")),
    ("line subscribes to another agent", EffectsMismatch,
     lambda s: s.asked["t1"].calls[5][1].update(name="idle")),
    ("the line cancels a reminder without a call", EffectsMismatch,
     lambda s: s.at("boss", "turn.complete", 1).update(cancelled=["r1"])),
    ("the line ends a subscription without a call", EffectsMismatch,
     lambda s: s.at("boss", "turn.complete", 1).update(unsubscribed=["s1"])),
    ("cancellation is not in the line", EffectsMismatch,
     lambda s: (wait(s), s.at("boss", "turn.complete", 3).pop("cancelled"))),
    ("end of a subscription is not in the line", EffectsMismatch,
     lambda s: (wait(s), s.at("boss", "turn.complete", 3).pop("unsubscribed"))),
    ("message is sent as a poke", EffectsMismatch, message_is_sent_as_a_poke),
    ("message replies to nothing", EffectsMismatch,
     lambda s: s.asked["t3"].calls[-1][1].update(reply_to="m5")),
    ("a poke has a payload", EffectsMismatch, lambda s: poke(s, IDLE, "psst")),
    ("poke is not in the line", EffectsMismatch, poke_is_not_in_the_line),
    ("a poke goes to another agent", EffectsMismatch, lambda s: poke(s, "USER", None)),
)  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=title_of)
def test_a_broken_law_is_reported(case: Case) -> None:
    check_case(case)


@pytest.mark.parametrize("key", ["name", "instructions", "provider", "model"])
def test_a_child_is_spawned_as_it_was_asked_for(key: str) -> None:
    story = team()
    spawn_call = story.asked["t1"].calls[1][1]
    spawn_call.update(provider="scripted", model="m")
    story.settle()
    spawn_call[key] = "other"
    with pytest.raises(EffectsMismatch, match=f"another {key} "):
        story.settle()


def test_what_is_taken_back_leaves_its_trace() -> None:
    story = team()
    wait(story)
    story.settle()


def test_what_is_taken_back_when_it_has_come_may_leave_no_trace() -> None:
    story = team()
    story.asked["t3"].calls += [
        ("cancel_reminder", {"reminder_id": "r1"}, {}),
        ("unsubscribe", {"subscription_id": "s1"}, {}),
    ]
    story.settle()


def test_no_tool_is_accepted_that_does_not_exist() -> None:
    story = team()
    story.asked["t3"].calls.append(("fly", {}, {}))
    with pytest.raises(Phantom):
        story.settle()


def test_a_poke_says_nothing() -> None:
    story = team()
    poke(story, IDLE, None)
    story.settle()


def test_a_question_leaves_no_trace() -> None:
    story = team()
    story.asked["t3"].calls += [
        ("list_children", {}, {"children": []}),
        ("inspect_agent", {"name": "idle"}, {"name": "idle"}),
        ("check_inbox", {}, {"error": "the turn is over"}),
    ]
    story.settle()


def test_what_an_inbox_showed_is_no_part_of_the_prompt_when_it_is_judged_again() -> None:
    story = team()
    check_inbox(story)
    story.settle()
    story.settle()


@pytest.mark.parametrize(
    ("part", "entries"),
    [
        ("metadata", {"mood": "good"}),
        ("controls", [{"control_id": "c9", "target": IDLE, "op": "gate"}]),
        ("reminders", [{"reminder_id": "r2", "due_ns": NOW_NS + 1, "payload": 0}]),
        ("cancelled", ["r2"]),
        ("subscribed", [{"subscription_id": "s2", "target": IDLE}]),
        ("unsubscribed", ["s2"]),
    ],
)
def test_a_turn_without_calls_has_an_empty_outbox(part: str, entries: Any) -> None:
    story = team()
    story.turn("boss", "t4", "r1", **{part: entries})
    shadow = story.shadow()
    with pytest.raises(EffectsMismatch):
        shadow.check(story.snapshot())


@pytest.mark.parametrize(
    "call",
    [
        ("set_agent_metadata", {"key": "mood", "value": "good"}, {}),
        ("gate", {"name": "idle"}, {}),
        ("remind_me", {"delay_ns": 1, "payload": 0}, {"reminder_id": "r2"}),
        ("cancel_reminder", {"reminder_id": "r2"}, {}),
        ("subscribe", {"name": "idle"}, {"subscription_id": "s2"}),
        ("unsubscribe", {"subscription_id": "s2"}, {}),
    ],
    ids=lambda call: call[0],
)
def test_a_turn_whose_line_is_plain_has_lost_what_was_called_in_it(call: Any) -> None:
    story = team()
    story.turn("boss", "t4", "r1", calls=[call])
    shadow = story.shadow()
    with pytest.raises(EffectsMismatch):
        shadow.check(story.snapshot())


@pytest.mark.parametrize(("name", "is_right"), [("kid", True), ("worker", False)])
def test_a_child_without_a_log_is_named_by_its_spawn(name: str, is_right: bool) -> None:
    story = team()
    story.turn("boss", "t4", "r1", spawned=[spawn("kid")], calls=[spawning("kid")])
    story.send("m9", "boss", 0)
    note = message("m10", BOSS, hexed("a-kid"), "text", 0)
    call = ("send_message", {"to": name, "payload": 0}, {"message_id": "m10"})
    story.turn("boss", "t5", "m9", outbox=[note], calls=[call])
    shadow = story.shadow()
    if is_right:
        shadow.check(story.snapshot())
    else:
        with pytest.raises(EffectsMismatch):
            shadow.check(story.snapshot())


def test_what_was_set_and_taken_back_in_one_turn_may_leave_no_trace_or_both() -> None:
    story = team()
    story.asked["t3"].calls += [
        ("remind_me", {"delay_ns": 1, "payload": 0}, {"reminder_id": "r9"}),
        ("cancel_reminder", {"reminder_id": "r9"}, {}),
        ("subscribe", {"name": "idle"}, {"subscription_id": "s9"}),
        ("unsubscribe", {"subscription_id": "s9"}, {}),
    ]
    story.settle()
    line = story.at("boss", "turn.complete", 1)
    line["reminders"] = [{"reminder_id": "r9", "due_ns": NOW_NS + 1, "payload": 0}]
    line["subscribed"] = [{"subscription_id": "s9", "target": IDLE}]
    line["cancelled"], line["unsubscribed"] = ["r9"], ["s9"]
    story.settle()
