"""The sixteen tools: what each answers, what it collects, and every refusal."""

from __future__ import annotations

from typing import Any

import pytest

from system.agents.tools import TurnTools
from system.ports import Json, JsonObject
from tests.unit.system.agents.fake_provider import play
from tests.unit.system.agents.room import SECOND_NS, Room


class Family:
    """Ada is a root with the children Bob and Eve; Zoe is a child of Bob; Rex another root."""

    def __init__(self, room: Room) -> None:
        self.room = room
        room.open()
        ada = room.create("Ada")
        room.create("Rex")
        zoe = play(("spawn_agent", {"name": "Zoe"}))
        room.say(ada, play(("spawn_agent", {"name": "Bob"}), ("spawn_agent", {"name": "Eve"})))
        room.say(self.id("Bob"), zoe)
        room.provider.results.clear()

    def id(self, name: str) -> str:
        return self.room.named(name).agent_id

    def turn(self, name: str, presented: tuple[str, ...] = ()) -> Turn:
        agent = self.room.agent(self.id(name))
        return Turn(TurnTools(self.room.runtime._orchestrator, agent, presented))


class Turn:
    """One turn whose tools are called from here; every call has an id of its own."""

    def __init__(self, tools: TurnTools) -> None:
        self.tools = tools
        self.effects = tools.effects
        self._calls = 0

    def call(self, tool: str, /, **arguments: Json) -> JsonObject:
        self._calls += 1
        return self.tools.call(f"call {self._calls}", tool, arguments)

    def error(self, tool: str, /, **arguments: Json) -> str:
        result = self.call(tool, **arguments)
        assert list(result) == ["error"]
        return str(result["error"])

    def sent(self) -> list[tuple[str, str, Any]]:
        return [
            (message.recipient, message.kind.value, message.payload)
            for message in self.effects.outbox
        ]


@pytest.fixture
def family(room: Room) -> Family:
    return Family(room)


NEAR = "is no living parent, child or sibling of this agent"


# -- messages ----------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["Ada", "Eve", "Zoe"])
def test_a_message_goes_to_the_parent_a_sibling_or_a_child(family: Family, to: str) -> None:
    turn = family.turn("Bob")

    result = turn.call("send_message", to=to, payload="hello", reply_to="m")

    assert turn.sent() == [(family.id(to), "text", "hello")]
    assert result == {"message_id": turn.effects.outbox[0].message_id}
    assert turn.effects.outbox[0].reply_to == "m"
    assert turn.effects.outbox[0].sender == family.id("Bob")


def test_a_message_may_name_its_recipient_by_id(family: Family) -> None:
    turn = family.turn("Bob")
    turn.call("send_message", to=family.id("Eve"), payload=None)

    assert turn.sent() == [(family.id("Eve"), "text", None)]


def test_a_root_may_write_to_the_operator(family: Family) -> None:
    turn = family.turn("Ada")
    turn.call("send_message", to="USER", payload=1)

    assert turn.sent() == [("USER", "text", 1)]


@pytest.mark.parametrize("to", ["USER", "Rex", "Bob", "nobody", ""])
def test_a_message_to_anybody_else_is_refused(family: Family, to: str) -> None:
    turn = family.turn("Bob")

    assert turn.error("send_message", to=to, payload="hello") == f"{to!r} {NEAR}"
    assert turn.effects.outbox == []


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"payload": 1}, "to=None is not a text"),
        ({"to": 7, "payload": 1}, "to=7 is not a text"),
        ({"to": "Eve", "payload": 1, "reply_to": 7}, "reply_to=7 is not a message id"),
        ({"to": "Eve", "payload": float("inf")}, "value: inf is not a finite number"),
        (
            {"to": "Eve", "payload": "x" * (1 << 20)},
            "a payload of size_bytes=1048578 is over the limit of 1048576",
        ),
    ],
)
def test_a_message_that_cannot_be_written_down_is_refused(
    family: Family, arguments: JsonObject, refusal: str
) -> None:
    turn = family.turn("Bob")

    assert turn.error("send_message", **arguments) == refusal
    assert turn.effects.outbox == []


def test_a_poke_has_no_payload(family: Family) -> None:
    turn = family.turn("Bob")
    result = turn.call("poke", to="Ada", payload="ignored")

    assert turn.sent() == [(family.id("Ada"), "poke", None)]
    assert list(result) == ["message_id"]


def test_a_broadcast_reaches_every_child_and_sibling_and_nobody_else(family: Family) -> None:
    turn = family.turn("Bob")
    child = turn.call("spawn_agent", name="Kim")["agent_id"]

    result = turn.call("broadcast", payload="all")

    assert turn.sent() == [
        (family.id("Zoe"), "text", "all"),
        (child, "text", "all"),
        (family.id("Eve"), "text", "all"),
    ]
    assert result == {"message_ids": [message.message_id for message in turn.effects.outbox]}


def test_a_broadcast_that_nobody_hears_is_refused_for_its_payload_all_the_same(
    family: Family,
) -> None:
    turn = family.turn("Rex")

    assert turn.call("broadcast", payload="all") == {"message_ids": []}
    assert "not a finite number" in turn.error("broadcast", payload=float("nan"))


def test_the_inbox_shows_what_arrived_during_the_turn_once(family: Family, room: Room) -> None:
    agent = room.agent(family.id("Bob"))
    agent.history.gated = True
    first = room.say(family.id("Bob"), "first")
    turn = family.turn("Bob", (first,))
    second = room.say(family.id("Bob"), "second")

    shown = turn.call("check_inbox")["messages"]

    assert shown == [
        {
            "message_id": second, "sender": "USER", "sender_name": "USER", "kind": "text",
            "payload": "second", "reply_to": None,
        }
    ]  # fmt: skip
    assert turn.effects.presented == [first, second]
    assert turn.call("check_inbox") == {"messages": []}


# -- the tree ----------------------------------------------------------------------------


def test_a_spawned_child_inherits_what_is_not_said(family: Family) -> None:
    turn = family.turn("Bob")

    child = turn.call("spawn_agent", name="Kim")["agent_id"]

    spawn = turn.effects.spawned[str(child)]
    assert (spawn.name, spawn.instructions, spawn.provider, spawn.model) == (
        "Kim", "", "scripted", "",
    )  # fmt: skip
    assert len({spawn.agent_id, spawn.session_id, spawn.bootstrap_id}) == 3


def test_a_spawned_child_has_what_is_said(family: Family) -> None:
    turn = family.turn("Bob")
    turn.call("spawn_agent", name="Kim", instructions="sing", provider="scripted", model="small")

    (spawn,) = turn.effects.spawned.values()
    assert (spawn.instructions, spawn.provider, spawn.model) == ("sing", "scripted", "small")


def test_a_spawned_child_can_be_addressed_in_the_same_turn(family: Family) -> None:
    turn = family.turn("Bob")
    child = turn.call("spawn_agent", name="Kim")["agent_id"]

    turn.call("send_message", to="Kim", payload=1)
    turn.call("poke", to=child)
    turn.call("gate", name="Kim")
    turn.call("subscribe", name="Kim")

    assert [to for to, _kind, _payload in turn.sent()] == [child, child]
    assert [control["target"] for control in turn.effects.controls] == [child]
    assert [added["target"] for added in turn.effects.subscribed] == [child]
    assert turn.error("inspect_agent", name="Kim") == "it cannot be inspected"


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({}, "name=None is not a text"),
        ({"name": ""}, "name='' is no name for an agent"),
        ({"name": "USER"}, "name='USER' is no name for an agent"),
        ({"name": "x" * 201}, f"name={'x' * 200!r} is no name for an agent"),
        ({"name": "Ada"}, "the name 'Ada' is taken by a living agent; choose another one"),
        ({"name": "Kim", "instructions": 7}, "instructions=7 is not a text"),
        ({"name": "Kim", "model": None}, "model=None is not a text"),
        ({"name": "Kim", "provider": "none"}, "there is no provider 'none'"),
        ({"name": "\ud800"}, "value[0]: lone surrogate '\\ud800' at character 0"),
    ],
)
def test_a_spawn_that_cannot_be_is_refused(
    family: Family, arguments: JsonObject, refusal: str
) -> None:
    turn = family.turn("Bob")

    assert turn.error("spawn_agent", **arguments) == refusal
    assert turn.effects.spawned == {}


def test_a_name_that_a_running_turn_has_promised_is_taken(family: Family) -> None:
    family.turn("Bob").call("spawn_agent", name="Kim")

    refusal = family.turn("Eve").error("spawn_agent", name="Kim")

    assert refusal == "the name 'Kim' is taken by a living agent; choose another one"


def test_the_names_of_a_turn_that_is_given_up_are_free_again(family: Family) -> None:
    turn = family.turn("Bob")
    turn.call("spawn_agent", name="Kim")
    turn.tools.give_up()

    assert "agent_id" in family.turn("Eve").call("spawn_agent", name="Kim")


def test_the_children_are_those_that_live(family: Family) -> None:
    assert family.turn("Ada").call("list_children") == {
        "children": [
            {"agent_id": family.id("Bob"), "name": "Bob"},
            {"agent_id": family.id("Eve"), "name": "Eve"},
        ]
    }
    assert family.turn("Eve").call("list_children") == {"children": []}


def test_inspecting_a_neighbour_shows_what_it_is_at(family: Family) -> None:
    assert family.turn("Eve").call("inspect_agent", name="Bob") == {
        "agent_id": family.id("Bob"),
        "name": "Bob",
        "parent": family.id("Ada"),
        "children": [{"agent_id": family.id("Zoe"), "name": "Zoe"}],
        "pending": 0,
        "turns": 2,
        "gated": False,
        "metadata": {},
    }


@pytest.mark.parametrize("by", ["name", "id"])
def test_an_agent_may_inspect_itself(family: Family, by: str) -> None:
    name = "Eve" if by == "name" else family.id("Eve")

    assert family.turn("Eve").call("inspect_agent", name=name)["name"] == "Eve"


def test_the_operator_cannot_be_inspected(family: Family) -> None:
    assert family.turn("Ada").error("inspect_agent", name="USER") == "it cannot be inspected"


def test_who_is_out_of_reach_cannot_be_inspected(family: Family) -> None:
    assert family.turn("Ada").error("inspect_agent", name="Zoe") == f"'Zoe' {NEAR}"


def test_metadata_is_kept_under_its_key(family: Family) -> None:
    turn = family.turn("Eve")

    assert turn.call("set_agent_metadata", key="mood", value=["glad"]) == {}
    turn.call("set_agent_metadata", key="mood", value="sad")
    turn.call("set_agent_metadata", key="empty")

    assert turn.effects.metadata == {"mood": "sad", "empty": None}


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"value": 1}, "key=None is not a text"),
        ({"key": "\udfff", "value": 1}, "value: lone surrogate '\\udfff' at character 0"),
        ({"key": "k", "value": float("nan")}, "value: nan is not a finite number"),
    ],
)
def test_metadata_that_cannot_be_written_down_is_refused(
    family: Family, arguments: JsonObject, refusal: str
) -> None:
    turn = family.turn("Eve")

    assert turn.error("set_agent_metadata", **arguments) == refusal
    assert turn.effects.metadata == {}


def test_a_result_goes_to_the_parent(family: Family) -> None:
    turn = family.turn("Eve")

    assert turn.call("complete", result=42) == {}

    completion = turn.effects.completion
    assert completion is not None
    assert (completion.recipient, completion.kind.value, completion.payload) == (
        family.id("Ada"), "response", 42,
    )  # fmt: skip


def test_the_result_of_a_root_goes_to_the_operator(family: Family) -> None:
    turn = family.turn("Rex")
    turn.call("complete")

    completion = turn.effects.completion
    assert completion is not None
    assert (completion.recipient, completion.payload) == ("USER", None)


def test_an_agent_with_living_children_cannot_complete(family: Family) -> None:
    turn = family.turn("Bob")

    assert turn.error("complete") == f"there are living children: {family.id('Zoe')}"
    assert turn.effects.completion is None


def test_an_agent_that_has_just_spawned_cannot_complete(family: Family) -> None:
    turn = family.turn("Eve")
    child = turn.call("spawn_agent", name="Kim")["agent_id"]

    assert turn.error("complete") == f"there are living children: {child}"


def test_a_result_that_cannot_be_written_down_completes_nothing(family: Family) -> None:
    turn = family.turn("Eve")

    assert "not a finite number" in turn.error("complete", result=float("nan"))
    assert turn.call("list_children") == {"children": []}


@pytest.mark.parametrize(
    "tool",
    [
        "send_message", "broadcast", "poke", "spawn_agent", "list_children", "inspect_agent",
        "set_agent_metadata", "complete", "remind_me", "cancel_reminder", "subscribe",
        "unsubscribe", "gate", "ungate", "permit_turn",
    ],
)  # fmt: skip
def test_nothing_but_a_look_into_the_inbox_follows_a_completion(family: Family, tool: str) -> None:
    turn = family.turn("Eve")
    turn.call("complete", result=1)

    assert turn.error(tool, result=2) == "this turn has completed the agent; nothing may follow"
    assert turn.call("check_inbox") == {"messages": []}


# -- waiting for something ---------------------------------------------------------------


def test_a_reminder_is_due_after_its_delay(family: Family, room: Room) -> None:
    turn = family.turn("Eve")
    before_ns = room.world.clock.wall_ns()

    result = turn.call("remind_me", delay_ns=SECOND_NS, payload="tea")

    (added,) = turn.effects.reminders
    # The clock of the simulated world moves on by a microsecond whenever somebody looks.
    assert added["due_ns"] == before_ns + SECOND_NS + 1_000
    assert (added["reminder_id"], added["payload"]) == (result["reminder_id"], "tea")


@pytest.mark.parametrize("delay_ns", [-1, 1.5, True, "1", None])
def test_a_delay_is_a_whole_number_of_nanoseconds_from_now_on(
    family: Family, delay_ns: Json
) -> None:
    turn = family.turn("Eve")

    refusal = turn.error("remind_me", delay_ns=delay_ns, payload=None)

    assert refusal == f"delay_ns={delay_ns!r} is not a number of nanoseconds"
    assert turn.effects.reminders == []


def test_a_reminder_whose_payload_cannot_be_written_down_is_refused(family: Family) -> None:
    turn = family.turn("Eve")

    assert "finite" in turn.error("remind_me", delay_ns=1, payload=float("nan"))
    assert turn.effects.reminders == []


def test_a_reminder_of_this_turn_or_of_an_earlier_one_is_cancelled_once(
    family: Family, room: Room
) -> None:
    room.say(family.id("Eve"), play(("remind_me", {"delay_ns": SECOND_NS, "payload": 1})))
    earlier = room.provider.results[-1]["reminder_id"]
    turn = family.turn("Eve")
    own = turn.call("remind_me", delay_ns=1, payload=2)["reminder_id"]

    assert turn.call("cancel_reminder", reminder_id=earlier) == {}
    assert turn.call("cancel_reminder", reminder_id=own) == {}

    assert turn.effects.cancelled == [earlier, own]
    assert turn.error("cancel_reminder", reminder_id=own) == f"there is no reminder {own!r}"
    assert turn.error("cancel_reminder", reminder_id=7) == "reminder_id=7 is not a text"


def test_a_subscription_of_this_turn_or_of_an_earlier_one_is_given_up_once(
    family: Family, room: Room
) -> None:
    room.say(family.id("Eve"), play(("subscribe", {"name": "Bob"})))
    earlier = room.provider.results[-1]["subscription_id"]
    turn = family.turn("Eve")
    own = turn.call("subscribe", name="Ada")["subscription_id"]

    assert turn.call("unsubscribe", subscription_id=earlier) == {}
    assert turn.call("unsubscribe", subscription_id=own) == {}

    assert turn.effects.unsubscribed == [earlier, own]
    assert turn.error("unsubscribe", subscription_id=own) == f"there is no subscription {own!r}"
    assert turn.error("unsubscribe") == "subscription_id=None is not a text"


def test_nobody_subscribes_to_the_operator_nor_to_who_is_out_of_reach(family: Family) -> None:
    assert family.turn("Ada").error("subscribe", name="USER") == "USER never ends"
    assert family.turn("Ada").error("subscribe", name="Zoe") == f"'Zoe' {NEAR}"


# -- children's turns --------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["gate", "ungate", "permit_turn"])
def test_a_parent_controls_the_turns_of_its_children(family: Family, tool: str) -> None:
    turn = family.turn("Ada")

    assert turn.call(tool, name="Bob") == {}

    (control,) = turn.effects.controls
    assert (control["target"], control["op"]) == (family.id("Bob"), tool)


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("Ada", "'Ada' is not a child of this agent"),
        ("Eve", "'Eve' is not a child of this agent"),
        ("Rex", f"'Rex' {NEAR}"),
    ],
)
def test_nobody_controls_the_turns_of_others(family: Family, name: str, refusal: str) -> None:
    turn = family.turn("Bob")

    assert turn.error("gate", name=name) == refusal
    assert turn.effects.controls == []


# -- calls -------------------------------------------------------------------------------


def test_a_call_that_comes_twice_is_done_once_and_answered_twice(family: Family) -> None:
    tools = family.turn("Bob").tools
    arguments: JsonObject = {"to": "Eve", "payload": 1}

    first = tools.call("same", "send_message", arguments)
    again = tools.call("same", "send_message", arguments)
    other = tools.call("other", "send_message", arguments)

    assert again == first != other
    assert len(tools.effects.outbox) == 2


def test_a_refusal_that_comes_twice_stays_a_refusal(family: Family) -> None:
    tools = family.turn("Bob").tools
    first = tools.call("same", "poke", {"to": "nobody"})

    assert tools.call("same", "check_inbox", {}) == first


@pytest.mark.parametrize("arguments", [None, [], "to", 7])
def test_arguments_that_are_no_object_are_refused(family: Family, arguments: Any) -> None:
    turn = family.turn("Bob")

    assert turn.tools.call("1", "check_inbox", arguments) == {
        "error": f"the arguments of a tool are an object, not {arguments!r}"
    }


def test_a_tool_that_does_not_exist_is_refused_with_those_that_do(family: Family) -> None:
    assert family.turn("Bob").error("sing") == (
        "there is no tool 'sing'; known are send_message, broadcast, poke, check_inbox, "
        "spawn_agent, list_children, inspect_agent, set_agent_metadata, complete, remind_me, "
        "cancel_reminder, subscribe, unsubscribe, gate, ungate, permit_turn"
    )
