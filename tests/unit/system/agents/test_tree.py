"""The tree: names, neighbours, ends."""

from __future__ import annotations

import pytest

from system.agents.tree import Node, Tree
from system.errors import NameTaken


def family() -> Tree:
    """Two roots; the first has two children, and one of them a child."""
    tree = Tree()
    for name, parent in [
        ("root", None), ("other", None), ("left", "root"), ("right", "root"), ("leaf", "left"),
    ]:  # fmt: skip
        tree.add(Node(f"id-{name}", f"session-{name}", name, f"id-{parent}" if parent else None))
    return tree


def test_agents_stand_in_the_order_in_which_they_were_placed() -> None:
    assert [node.name for node in family()] == ["root", "other", "left", "right", "leaf"]


@pytest.mark.parametrize(
    ("who", "to", "found"),
    [
        ("left", "root", "id-root"),
        ("left", "id-root", "id-root"),
        ("left", "right", "id-right"),
        ("left", "leaf", "id-leaf"),
        ("root", "left", "id-left"),
        ("root", "USER", "USER"),
        ("left", "USER", None),
        ("root", "other", None),
        ("root", "leaf", None),
        ("leaf", "root", None),
        ("leaf", "right", None),
        ("left", "left", None),
        ("left", "nobody", None),
    ],
)
def test_an_agent_reaches_its_parent_its_children_and_its_siblings(
    who: str, to: str, found: str | None
) -> None:
    assert family().address(f"id-{who}", to) == found


def test_an_agent_that_has_ended_is_not_reached_by_name_nor_by_id() -> None:
    tree = family()
    tree.end("id-right")

    assert tree.address("id-left", "right") is None
    assert tree.address("id-left", "id-right") is None
    assert tree.siblings("id-left") == []
    assert tree.nodes["id-root"].children == ["id-left"]


def test_the_siblings_are_the_other_living_children_and_a_root_has_none() -> None:
    assert family().siblings("id-left") == ["id-right"]
    assert family().siblings("id-root") == []


def test_a_root_may_end() -> None:
    tree = family()
    tree.end("id-other")

    assert not tree.nodes["id-other"].alive


def test_the_name_of_a_living_agent_is_taken() -> None:
    with pytest.raises(NameTaken):
        family().reserve("left")


def test_the_name_of_an_agent_that_has_ended_is_free() -> None:
    tree = family()
    tree.end("id-right")

    tree.reserve("right")


def test_a_reserved_name_is_taken_until_it_is_released() -> None:
    tree = family()
    tree.reserve("new")
    with pytest.raises(NameTaken):
        tree.reserve("new")
    tree.release("new")

    tree.reserve("new")


def test_a_reservation_becomes_the_name_of_the_agent_that_is_placed() -> None:
    tree = family()
    tree.reserve("new")
    tree.add(Node("id-new", "session-new", "new", None))
    tree.end("id-new")

    tree.reserve("new")


def test_an_agent_that_had_ended_before_has_a_place_and_no_name() -> None:
    tree = family()
    tree.add(Node("id-old", "session-old", "old", "id-root", alive=False))

    assert tree.nodes["id-root"].children == ["id-left", "id-right"]
    assert tree.names["id-old"] == "old"
    tree.reserve("old")


def test_of_two_living_agents_of_one_name_the_older_keeps_it() -> None:
    tree = family()
    tree.add(Node("id-duplicate", "session-duplicate", "left", "id-root"))

    assert tree.address("id-root", "left") == "id-left"
    tree.end("id-duplicate")
    assert tree.address("id-root", "left") == "id-left"
