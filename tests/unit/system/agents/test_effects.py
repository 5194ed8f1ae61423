"""The line that a turn becomes: all of its effects, in one place."""

from __future__ import annotations

from system.agents.effects import Effects, Spawn
from system.agents.message import Message, MessageKind

CHILD = Spawn("a", "s", "Bob", "work", "scripted", "small", "b")
HELLO = Message("m", "ada", "bob", MessageKind.TEXT, "hello", "then")


def test_a_spawn_comes_back_from_its_data() -> None:
    assert Spawn.of_data(CHILD.data()) == CHILD
    assert CHILD.data() == {
        "agent_id": "a", "session_id": "s", "name": "Bob", "instructions": "work",
        "provider": "scripted", "model": "small", "bootstrap_id": "b",
    }  # fmt: skip


def test_a_turn_that_does_nothing_leaves_out_everything_that_is_empty() -> None:
    by = {"name": "scripted", "identity": "c1"}

    line = Effects(["m"]).line("t", "yes", {**by}, [], permitted=False)

    assert line == {
        "turn_id": "t", "trigger_id": None, "presented": ["m"], "response": "yes",
        "provider": by, "outbox": [], "spawned": [], "terminate": False,
    }  # fmt: skip


def test_a_turn_that_does_everything_has_all_of_it_in_its_line() -> None:
    result = HELLO._replace(message_id="r", kind=MessageKind.RESPONSE)
    effects = Effects(
        ["m"], [HELLO], {"a": CHILD}, [{"control_id": "c"}], [{"subscription_id": "s"}], ["u"],
        [{"reminder_id": "r"}], ["x"], {"mood": "glad"}, result,
    )  # fmt: skip

    line = effects.line("t", "yes", {}, ["late"], permitted=True)

    # The response comes last, so that whoever reads it has read the rest.
    assert line["outbox"] == [HELLO.data(), result.data()]
    assert line["spawned"] == [CHILD.data()]
    assert line["terminate"] is True
    assert line["controls"] == [{"control_id": "c"}]
    assert line["subscribed"] == [{"subscription_id": "s"}]
    assert line["unsubscribed"] == ["u"]
    assert line["reminders"] == [{"reminder_id": "r"}]
    assert line["cancelled"] == ["x"]
    assert line["metadata"] == {"mood": "glad"}
    assert line["returned"] == ["late"]
    assert line["permitted"] is True
