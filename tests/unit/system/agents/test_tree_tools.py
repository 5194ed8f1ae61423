"""The tools of the tree: children, neighbours, metadata, results, and children's turns."""

from __future__ import annotations

import pytest

from system.ports import JsonObject
from tests.unit.system.agents.family import NEAR, Family

PLAIN = "convert it to plain JSON first, or keep it in a file and pass the name of the file"

# -- the tree ----------------------------------------------------------------------------


def test_a_spawned_child_inherits_what_is_not_said(family: Family) -> None:
    turn = family.turn("Bob")

    child = turn.call("spawn_agent", name="Kim")["agent_id"]

    spawn = turn.draft.spawned[str(child)]
    assert (spawn.name, spawn.instructions, spawn.provider, spawn.model) == (
        "Kim", "", "scripted", "",
    )  # fmt: skip
    assert len({spawn.agent_id, spawn.session_id, spawn.bootstrap_id}) == 3


def test_a_spawned_child_has_what_is_said(family: Family) -> None:
    turn = family.turn("Bob")
    turn.call("spawn_agent", name="Kim", instructions="sing", provider="scripted", model="small")

    (spawn,) = turn.draft.spawned.values()
    assert (spawn.instructions, spawn.provider, spawn.model) == ("sing", "scripted", "small")


def test_a_spawned_child_can_be_addressed_in_the_same_turn(family: Family) -> None:
    turn = family.turn("Bob")
    child = turn.call("spawn_agent", name="Kim")["agent_id"]

    turn.call("send_message", to="Kim", payload=1)
    turn.call("poke", to=child)
    turn.call("gate", name="Kim")
    turn.call("subscribe", name="Kim")

    assert [to for to, _kind, _payload in turn.sent()] == [child, child]
    assert [control.target for control in turn.draft.controls] == [child]
    assert [added.target for added in turn.draft.subscribed] == [child]
    assert turn.error("inspect_agent", name="Kim") == "it cannot be inspected"


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({}, "name=None is not a text"),
        ({"name": ""}, "name='' is not a name for an agent"),
        ({"name": "USER"}, "name='USER' is not a name for an agent"),
        ({"name": "x" * 201}, f"name={'x' * 200!r} is not a name for an agent"),
        ({"name": "Ada"}, "the name 'Ada' is taken by a living agent; choose another one"),
        ({"name": "Kim", "instructions": 7}, "instructions=7 is not a text"),
        ({"name": "Kim", "model": None}, "model=None is not a text"),
        ({"name": "Kim", "provider": "none"}, "there is no provider 'none'"),
        ({"name": "\ud800"}, f"value[0]: lone surrogate '\\ud800' at character 0; {PLAIN}"),
    ],
)
def test_a_spawn_that_cannot_be_is_refused(
    family: Family, arguments: JsonObject, refusal: str
) -> None:
    turn = family.turn("Bob")

    assert turn.error("spawn_agent", **arguments) == refusal
    assert turn.draft.spawned == {}


def test_a_name_that_a_running_turn_has_given_to_a_child_is_taken(family: Family) -> None:
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

    assert turn.draft.metadata == {"mood": "sad", "empty": None}


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"value": 1}, "key=None is not a text"),
        ({"key": "\udfff", "value": 1}, f"value: lone surrogate '\\udfff' at character 0; {PLAIN}"),
        ({"key": "k", "value": float("nan")}, f"value: nan is not a finite number; {PLAIN}"),
    ],
)
def test_metadata_that_cannot_be_written_down_is_refused(
    family: Family, arguments: JsonObject, refusal: str
) -> None:
    turn = family.turn("Eve")

    assert turn.error("set_agent_metadata", **arguments) == refusal
    assert turn.draft.metadata == {}


def test_a_result_goes_to_the_parent(family: Family) -> None:
    turn = family.turn("Eve")

    assert turn.call("complete", result=42) == {}

    completion = turn.draft.completion
    assert completion is not None
    assert (completion.recipient, completion.kind.value, completion.payload) == (
        family.id("Ada"), "response", 42,
    )  # fmt: skip


def test_the_result_of_a_root_goes_to_the_operator(family: Family) -> None:
    turn = family.turn("Rex")
    turn.call("complete")

    completion = turn.draft.completion
    assert completion is not None
    assert (completion.recipient, completion.payload) == ("USER", None)


def test_an_agent_with_living_children_cannot_complete(family: Family) -> None:
    turn = family.turn("Bob")

    assert turn.error("complete") == "there are living children: Zoe"
    assert turn.draft.completion is None


def test_an_agent_that_has_just_spawned_cannot_complete(family: Family) -> None:
    turn = family.turn("Eve")
    turn.call("spawn_agent", name="Kim")

    assert turn.error("complete") == "there are living children: Kim"


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
def test_only_check_inbox_may_follow_a_completion(family: Family, tool: str) -> None:
    turn = family.turn("Eve")
    turn.call("complete", result=1)

    assert turn.error(tool, result=2) == "this turn has completed the agent; nothing may follow"
    assert turn.call("check_inbox") == {"messages": []}


# -- children's turns --------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["gate", "ungate", "permit_turn"])
def test_a_parent_controls_the_turns_of_its_children(family: Family, tool: str) -> None:
    turn = family.turn("Ada")

    assert turn.call(tool, name="Bob") == {}

    (control,) = turn.draft.controls
    assert (control.target, control.op) == (family.id("Bob"), tool)


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
    assert turn.draft.controls == []
