"""The laws between the outside world and the log: answers, prompts, effects, conversations."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from oracles.runtime.violations import (
    ConversationMismatch,
    EffectsMismatch,
    PrematureCommit,
    PresentedMismatch,
    UnpresentedDelivery,
)
from oracles.violation import Phantom, Resurrected, TornRecord, Violation
from tests.unit.oracles.runtime.story import NOW_NS, Break, Story, hexed, message
from tests.unit.oracles.runtime.team import Wrong, bounce, name_of, team

WRONG = Wrong()
BOSS, IDLE = hexed("a-boss"), hexed("a-idle")


@WRONG.caught_by(PrematureCommit)
def answer_was_cut_short(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["response"] = "answer of"


@WRONG.caught_by(PrematureCommit)
def answer_never_came(story: Story) -> None:
    story.asked["t3"].answer = None


@WRONG.caught_by(Phantom)
def provider_was_never_asked(story: Story) -> None:
    del story.asked["t3"]


@WRONG.caught_by(UnpresentedDelivery)
def message_is_consumed_that_came_during_the_turn(story: Story) -> None:
    story.at("boss", "turn.complete", 1)["presented"].append("r1")


@WRONG.caught_by(PresentedMismatch)
def inbox_was_checked_and_the_line_forgets_it(story: Story) -> None:
    new = {"messages": story.prompt_of("boss", ["r1"])}
    story.asked["t3"].calls.append(("check_inbox", {}, new))


@WRONG.caught_by(PresentedMismatch)
def provider_got_another_prompt_than_the_log(story: Story) -> None:
    story.asked["t3"].prompt = story.asked["t3"].prompt + " "


@WRONG.caught_by(TornRecord)
def message_is_shown_otherwise_than_it_was_sent(story: Story) -> None:
    start = story.at("boss", "turn.start", 1)
    start["prompt"] = story.asked["t3"].prompt = start["prompt"].replace('"soon"', '"never"')


@WRONG.caught_by(ConversationMismatch)
def turn_is_asked_for_in_the_conversation_of_another_session(story: Story) -> None:
    story.asked["t3"].session = hexed("s-idle")


@WRONG.caught_by(ConversationMismatch)
def service_has_forgotten_a_turn(story: Story) -> None:
    story.asked["t3"].superset = True
    story.asked["t3"].history.pop()


@WRONG.caught_by(ConversationMismatch)
def service_remembers_the_turns_in_another_order(story: Story) -> None:
    bounce(story)
    story.asked["t4"].superset = True
    story.asked["t4"].history.reverse()


@WRONG.caught_by(EffectsMismatch)
def reminder_is_due_later_than_it_was_asked_for(story: Story) -> None:
    remind(story, due_ns=NOW_NS + 10)


@WRONG.caught_by(EffectsMismatch)
def reminder_is_due_earlier_than_it_was_asked_for(story: Story) -> None:
    remind(story, due_ns=NOW_NS - 1_000_000)


def remind(story: Story, due_ns: int) -> None:
    """Let the boss ask for a reminder in a nanosecond, which comes at another moment."""
    asked = story.asked["t3"]
    asked.at_ns = NOW_NS
    asked.calls.append(("remind_me", {"delay_ns": 1, "payload": 0}, {"reminder_id": "r9"}))
    line = story.at("boss", "turn.complete", 1)
    line["reminders"] = [{"reminder_id": "r9", "due_ns": due_ns, "payload": 0}]


@WRONG.caught_by(EffectsMismatch)
def message_was_sent_and_is_not_in_the_line(story: Story) -> None:
    call = ("send_message", {"to": "idle", "payload": 0}, {"message_id": "m9"})
    story.asked["t3"].calls.append(call)


@WRONG.caught_by(EffectsMismatch)
def line_sends_what_nobody_sent(story: Story) -> None:
    story.asked["t3"].calls.pop()


@WRONG.caught_by(EffectsMismatch)
def refused_call_has_an_effect(story: Story) -> None:
    name, arguments, _ = story.asked["t3"].calls.pop()
    story.asked["t3"].calls.append((name, arguments, {"error": "no"}))


@WRONG.caught_by(EffectsMismatch)
def line_sends_another_payload(story: Story) -> None:
    story.asked["t3"].calls[-1][1]["payload"] = "nothing done"


@WRONG.caught_by(EffectsMismatch)
def line_reaches_somebody_else(story: Story) -> None:
    story.asked["t1"].calls[2][1]["to"] = "idle"


@WRONG.caught_by(EffectsMismatch)
def spawn_is_not_in_the_line(story: Story) -> None:
    call = ("spawn_agent", {"name": "x", "instructions": ""}, {"agent_id": hexed("a-x")})
    story.asked["t3"].calls.append(call)


@WRONG.caught_by(EffectsMismatch)
def metadata_is_not_what_was_set(story: Story) -> None:
    story.asked["t1"].calls[-1][1]["value"] = "wild"


@WRONG.caught_by(EffectsMismatch)
def gate_is_not_in_the_line(story: Story) -> None:
    story.asked["t3"].calls.insert(0, ("gate", {"name": "idle"}, {}))


@WRONG.caught_by(EffectsMismatch)
def only_gate_of_a_turn_is_not_in_the_line(story: Story) -> None:
    story.asked["t1"].calls.append(("gate", {"name": "idle"}, {}))


@WRONG.caught_by(EffectsMismatch)
def reminder_is_not_in_the_line(story: Story) -> None:
    call = ("remind_me", {"delay_ns": 1, "payload": 0}, {"reminder_id": "r9"})
    story.asked["t3"].calls.append(call)


@WRONG.caught_by(EffectsMismatch)
def subscription_is_not_in_the_line(story: Story) -> None:
    story.asked["t3"].calls.append(("subscribe", {"name": "idle"}, {"subscription_id": "s9"}))


@WRONG.caught_by(EffectsMismatch)
def completion_is_not_in_the_line(story: Story) -> None:
    story.asked["t3"].calls.append(("complete", {"result": "all done"}, {}))


@WRONG.caught_by(ConversationMismatch)
def bare_model_is_told_too_little(story: Story) -> None:
    story.asked["t3"].history.clear()


@WRONG.caught_by(ConversationMismatch)
def bare_model_is_told_another_answer(story: Story) -> None:
    story.asked["t3"].history[0] = (story.asked["t1"].prompt, "no")


@WRONG.caught_by(ConversationMismatch)
def bare_model_is_told_another_prompt(story: Story) -> None:
    story.asked["t3"].history[0] = ("[]", "answer of t1")


@pytest.mark.parametrize(("change", "violation"), WRONG.stories, ids=name_of)
def test_what_may_not_happen_is_noticed(change: Break, violation: type[Violation]) -> None:
    WRONG.judge(change, violation)


def test_a_checked_inbox_counts_as_shown() -> None:
    story = team()
    new = {"messages": story.prompt_of("boss", ["r1"])}
    story.asked["t3"].calls.append(("check_inbox", {}, new))
    story.at("boss", "turn.complete", 1)["presented"].append("r1")
    story.settle()


@pytest.mark.parametrize(
    "changes", [{"sender": IDLE}, {"kind": "poke"}, {"reply_to": "m1"}, {"sender_name": "chef"}]
)
def test_a_prompt_shows_a_message_as_it_is(changes: Mapping[str, object]) -> None:
    story = team()
    start = story.at("boss", "turn.start", 1)
    shown = json.loads(start["prompt"])
    shown[1].update(changes)
    start["prompt"] = story.asked["t3"].prompt = json.dumps(shown)
    with pytest.raises(TornRecord, match="with other contents"):
        story.settle()


def test_nobody_knows_what_a_service_remembers() -> None:
    story = team()
    asked = story.asked.pop("t3")
    shadow = story.shadow()
    assert shadow.turns is not None
    shadow.turns.record_request("t3", asked.prompt)
    for number, (name, arguments, result) in enumerate(asked.calls):
        shadow.turns.record_call("t3", str(number), name, arguments, result)
    shadow.turns.record_answer("t3", "answer of t3")
    shadow.settle(shadow.read(story.files()))


def test_nobody_knows_the_prompt_of_a_turn_whose_beginning_was_damaged() -> None:
    story = team()
    story.drop("boss", "turn.start")
    story.settle()


def test_without_a_witness_the_turns_are_not_judged() -> None:
    story = team()
    story.asked.clear()
    shadow = story.shadow()
    shadow.turns = None
    shadow.settle(shadow.read(story.files()))


def test_a_turn_that_a_crash_has_taken_never_comes_back() -> None:
    story = team()
    shadow = story.settle()
    assert shadow.turns is not None
    shadow.turns.record_request("t4", "[]", [])
    shadow.turns.record_answer("t4", "answer of t4")
    shadow.settle(shadow.read(story.files()))
    story.turn("boss", "t4", "r1")
    with pytest.raises(Resurrected):
        shadow.check(shadow.read(story.files()))


def test_a_repeated_call_gets_the_same_result() -> None:
    shadow = team().shadow()
    assert shadow.turns is not None
    shadow.turns.record_call("t3", "2", "send_message", {"to": "USER", "payload": "all done"},
                        {"message_id": "m6"})  # fmt: skip
    with pytest.raises(TornRecord):
        shadow.turns.record_call("t3", "2", "send_message", {"to": "USER", "payload": "all done"},
                            {"message_id": "m7"})  # fmt: skip


def test_an_answer_of_a_second_attempt_counts() -> None:
    story = team()
    shadow = story.shadow()
    assert shadow.turns is not None
    shadow.turns.record_request("t3", "[]", [])
    shadow.settle(shadow.read(story.files()))


def test_a_broadcast_sends_to_each() -> None:
    story = team()
    note = message("m9", BOSS, hexed("a-idle"), "text", "hey")
    story.at("boss", "turn.complete", 1)["outbox"].append(note)
    story.asked["t3"].calls.append(("broadcast", {"payload": "hey"}, {"message_ids": ["m9"]}))
    story.add("idle", "message.enqueued", **note)
    story.settle()
