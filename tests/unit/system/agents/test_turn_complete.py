"""A turn as a value: the line that it becomes, and the value that a line decodes to."""

from __future__ import annotations

import pytest

from system.agents.message import Message, MessageKind
from system.agents.outbox import Control, Outbox, Spawn
from system.agents.turn_complete import Reminder, Subscription, TurnComplete, TurnDraft
from system.agents.turn_work import EmittedTrigger, NewSchedule, OutboxActivity, TurnWork
from system.ports import JsonObject

CHILD = Spawn("a", "s", "Bob", "work", "scripted", "small", "b")
HELLO = Message("m", "ada", "bob", MessageKind.TEXT, "hello", "then")
RESULT = HELLO._replace(message_id="r", kind=MessageKind.RESPONSE)


def everything() -> TurnDraft:
    return TurnDraft(
        ["m"], [HELLO], {"a": CHILD}, [Control("c", "a", "gate")], [Subscription("s", "a")], ["u"],
        [Reminder("r", 7, "tea")], ["x"], {"mood": "glad"}, RESULT,
    )  # fmt: skip


def test_a_turn_without_effects_leaves_out_all_empty_members() -> None:
    turn = TurnDraft(["m"]).complete(
        "t", "yes", "scripted", "c1", ["m", "later"], permitted=False, dispatched=0
    )

    assert turn.data() == {
        "turn_id": "t", "trigger_id": None, "presented": ["m"], "response": "yes",
        "provider": {"name": "scripted", "identity": "c1"}, "outbox": [], "spawned": [],
        "terminate": False,
    }  # fmt: skip


def test_a_turn_with_every_effect_has_all_of_them_in_its_line() -> None:
    pending = ["m", "late"]

    line = (
        everything().complete("t", "yes", "p", "c1", pending, permitted=True, dispatched=4).data()
    )

    # The response of ``complete`` is the last message.
    assert line["outbox"] == [HELLO.data(), RESULT.data()]
    assert line["spawned"] == [{
        "agent_id": "a", "session_id": "s", "name": "Bob", "instructions": "work",
        "provider": "scripted", "model": "small", "bootstrap_id": "b",
    }]  # fmt: skip
    assert line["terminate"] is True
    assert line["controls"] == [{"control_id": "c", "target": "a", "op": "gate"}]
    assert line["subscribed"] == [{"subscription_id": "s", "target": "a"}]
    assert line["unsubscribed"] == ["u"]
    assert line["reminders"] == [{"reminder_id": "r", "due_ns": 7, "payload": "tea"}]
    assert line["cancelled"] == ["x"]
    assert line["metadata"] == {"mood": "glad"}
    assert line["returned"] == ["late"]
    assert line["permitted"] is True
    assert line["dispatched"] == 4


@pytest.mark.parametrize("draft", [TurnDraft(["m"]), everything()], ids=["empty", "full"])
def test_a_decoded_line_is_encoded_to_the_same_line(draft: TurnDraft) -> None:
    line = draft.complete("t", "yes", "p", "c1", ["m", "late"], permitted=True, dispatched=4).data()

    assert TurnComplete.from_data(line).data() == line


def test_decoded_work_is_the_work_of_the_turn() -> None:
    work = TurnWork(
        [OutboxActivity("activity:1", "mail", {"to": "Anna"}, "t")],
        [],
        [EmittedTrigger("e", "IMMEDIATE", {"n": 1}, "about it", 7.5, "key", 10)],
        [NewSchedule("s", "every", "60", "UTC", None, None, 30, "latest")],
        ["u"],
    )
    assert TurnWork.from_data(work.data()) == work


@pytest.mark.parametrize(
    "foreign",
    [
        {"controls": [{"control_id": "c", "target": "a", "op": "pause"}]},
        {"outbox": [{**HELLO.data(), "kind": "alarm"}]},
        {"outbox": [{**HELLO.data(), "message_id": ["m"]}]},
        {"spawned": [{"session_id": "s", "agent_id": "a"}]},
    ],
    ids=["control", "kind", "message id", "spawn"],
)
def test_an_outbox_of_another_version_is_kept_apart(foreign: JsonObject) -> None:
    outbox = Outbox.from_data({"spawned": [CHILD.data()], "outbox": [HELLO.data()], **foreign})

    assert outbox.foreign
    assert (outbox.messages, outbox.controls) == ((), ())
    assert [spawn.session_id for spawn in outbox.spawned] == ["s"]


@pytest.mark.parametrize("missing", ["turn_id", "presented", "response", "provider", "terminate"])
def test_a_line_without_a_member_that_every_turn_has_is_no_turn(missing: str) -> None:
    line = (
        TurnDraft(["m"]).complete("t", "yes", "p", "c1", [], permitted=False, dispatched=0).data()
    )
    del line[missing]

    with pytest.raises(KeyError):
        TurnComplete.from_data(line)
