"""The laws between providers and logs: answers, prompts, effects, conversations."""

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
from oracles.violation import Phantom, Resurrected, TornRecord
from tests.unit.oracles.runtime.story import NOW_NS, Story, hexed, message
from tests.unit.oracles.runtime.team import Case, bounce, check_case, team, title_of

BOSS, IDLE = hexed("a-boss"), hexed("a-idle")


def answer_never_came(story: Story) -> None:
    story.asked["t3"].answer = None


def line_lacks_a_message_of_a_checked_inbox(story: Story) -> None:
    new = {"messages": story.prompt_of("boss", ["r1"])}
    story.asked["t3"].calls.append(("check_inbox", {}, new))


def provider_got_another_prompt_than_the_log(story: Story) -> None:
    story.asked["t3"].prompt = story.asked["t3"].prompt + " "


def prompt_shows_other_contents(story: Story) -> None:
    start = story.at("boss", "turn.start", 1)
    start["prompt"] = story.asked["t3"].prompt = start["prompt"].replace('"soon"', '"never"')


def turn_is_asked_for_in_the_conversation_of_another_session(story: Story) -> None:
    story.asked["t3"].session = hexed("s-idle")


def service_lacks_a_turn(story: Story) -> None:
    story.asked["t3"].superset = True
    story.asked["t3"].history.pop()


def service_remembers_the_turns_in_another_order(story: Story) -> None:
    bounce(story)
    story.asked["t4"].superset = True
    story.asked["t4"].history.reverse()


def remind(story: Story, due_ns: int) -> None:
    """Let the boss ask for a reminder in a nanosecond, which comes at another moment."""
    asked = story.asked["t3"]
    asked.at_ns = NOW_NS
    asked.calls.append(("remind_me", {"delay_ns": 1, "payload": 0}, {"reminder_id": "r9"}))
    line = story.at("boss", "turn.complete", 1)
    line["reminders"] = [{"reminder_id": "r9", "due_ns": due_ns, "payload": 0}]


def message_was_sent_and_is_not_in_the_line(story: Story) -> None:
    call = ("send_message", {"to": "idle", "payload": 0}, {"message_id": "m9"})
    story.asked["t3"].calls.append(call)


def refused_call_has_an_effect(story: Story) -> None:
    name, arguments, _ = story.asked["t3"].calls.pop()
    story.asked["t3"].calls.append((name, arguments, {"error": "no"}))


def spawn_is_not_in_the_line(story: Story) -> None:
    call = ("spawn_agent", {"name": "x", "instructions": ""}, {"agent_id": hexed("a-x")})
    story.asked["t3"].calls.append(call)


def reminder_is_not_in_the_line(story: Story) -> None:
    call = ("remind_me", {"delay_ns": 1, "payload": 0}, {"reminder_id": "r9"})
    story.asked["t3"].calls.append(call)


def subscription_is_not_in_the_line(story: Story) -> None:
    story.asked["t3"].calls.append(("subscribe", {"name": "idle"}, {"subscription_id": "s9"}))


def bare_model_is_given_another_answer(story: Story) -> None:
    story.asked["t3"].history[0] = (story.asked["t1"].prompt, "no")


def bare_model_is_given_another_prompt(story: Story) -> None:
    story.asked["t3"].history[0] = ("[]", "answer of t1")


WRONG: tuple[Case, ...] = (
    ("answer was cut short", PrematureCommit,
     lambda s: s.at("boss", "turn.complete", 1).update(response="answer of")),
    ("answer never came", PrematureCommit, answer_never_came),
    ("provider was never asked", Phantom, lambda s: s.asked.pop("t3")),
    ("message is consumed that came during the turn", UnpresentedDelivery,
     lambda s: s.at("boss", "turn.complete", 1)["presented"].append("r1")),
    ("the line lacks a message of a checked inbox", PresentedMismatch,
     line_lacks_a_message_of_a_checked_inbox),
    ("provider got another prompt than the log", PresentedMismatch,
     provider_got_another_prompt_than_the_log),
    ("a prompt shows other contents", TornRecord, prompt_shows_other_contents),
    ("turn is asked for in the conversation of another session", ConversationMismatch,
     turn_is_asked_for_in_the_conversation_of_another_session),
    ("a service lacks a turn", ConversationMismatch, service_lacks_a_turn),
    ("service remembers the turns in another order", ConversationMismatch,
     service_remembers_the_turns_in_another_order),
    ("reminder is due later than it was asked for", EffectsMismatch,
     lambda s: remind(s, due_ns=NOW_NS + 10)),
    ("reminder is due earlier than it was asked for", EffectsMismatch,
     lambda s: remind(s, due_ns=NOW_NS - 1000000)),
    ("message was sent and is not in the line", EffectsMismatch,
     message_was_sent_and_is_not_in_the_line),
    ("the line sends a message without a call", EffectsMismatch,
     lambda s: s.asked["t3"].calls.pop()),
    ("refused call has an effect", EffectsMismatch, refused_call_has_an_effect),
    ("line sends another payload", EffectsMismatch,
     lambda s: s.asked["t3"].calls[-1][1].update(payload="nothing done")),
    ("the line sends to another agent", EffectsMismatch,
     lambda s: s.asked["t1"].calls[2][1].update(to="idle")),
    ("spawn is not in the line", EffectsMismatch, spawn_is_not_in_the_line),
    ("metadata is not what was set", EffectsMismatch,
     lambda s: s.asked["t1"].calls[-1][1].update(value="wild")),
    ("gate is not in the line", EffectsMismatch,
     lambda s: s.asked["t3"].calls.insert(0, ("gate", {"name": "idle"}, {}))),
    ("only gate of a turn is not in the line", EffectsMismatch,
     lambda s: s.asked["t1"].calls.append(("gate", {"name": "idle"}, {}))),
    ("reminder is not in the line", EffectsMismatch, reminder_is_not_in_the_line),
    ("subscription is not in the line", EffectsMismatch, subscription_is_not_in_the_line),
    ("completion is not in the line", EffectsMismatch,
     lambda s: s.asked["t3"].calls.append(("complete", {"result": "all done"}, {}))),
    ("a bare model is given too few turns", ConversationMismatch,
     lambda s: s.asked["t3"].history.clear()),
    ("a bare model is given another answer", ConversationMismatch,
     bare_model_is_given_another_answer),
    ("a bare model is given another prompt", ConversationMismatch,
     bare_model_is_given_another_prompt),
)  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=title_of)
def test_a_broken_law_is_reported(case: Case) -> None:
    check_case(case)


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


def test_a_turn_without_a_history_is_not_compared_with_one() -> None:
    story = team()
    asked = story.asked.pop("t3")
    shadow = story.shadow()
    assert shadow.turns is not None
    shadow.turns.record_request("t3", asked.prompt)
    for number, (name, arguments, result) in enumerate(asked.calls):
        shadow.turns.record_call("t3", str(number), name, arguments, result)
    shadow.turns.record_answer("t3", "answer of t3")
    shadow.settle(shadow.read(story.files()))


def test_a_turn_without_its_start_is_accepted() -> None:
    story = team()
    story.drop("boss", "turn.start")
    story.settle()


def test_without_provider_records_turns_are_not_judged() -> None:
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
