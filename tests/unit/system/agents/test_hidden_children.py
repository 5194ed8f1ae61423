"""Children that cannot be read in this lifetime: they may live, and their parent must not end."""

from __future__ import annotations

import errno

import pytest

from system.agents.tree import Node, Tree
from system.errors import HasChildren, NameTaken
from tests.unit.system.agents.boot import recovered
from tests.unit.system.agents.fake_provider import play
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    ONE,
    TWO,
    Room,
    born,
    completed,
    enqueued,
    log_of,
    spawned,
)


def put_parent_and_unreadable_child(room: Room) -> None:
    promise = completed("t", spawned=[spawned(BOB, TWO, "Bob")])
    room.put_session(ONE, [*born(ADA, "Ada"), promise])
    room.put_session(TWO, [*born(BOB, "Bob", ONE), enqueued("boot", ADA, BOB, "bootstrap")])
    room.files.fail("pread", log_of(TWO), errno.EIO)


def test_a_hidden_child_counts_though_it_has_no_place() -> None:
    tree = Tree()
    tree.add(Node(ADA, ONE, "Ada", None))
    tree.add(Node(BOB, TWO, "Bob", ADA))

    tree.hide(ADA, "Eve")

    assert tree.dependants(ADA) == ["Bob", "Eve"]
    assert tree.nodes[ADA].children == [BOB]
    assert tree.is_taken("Eve")


def test_the_operator_cannot_end_a_parent_whose_child_cannot_be_read(room: Room) -> None:
    put_parent_and_unreadable_child(room)
    recovered(room)

    with pytest.raises(HasChildren, match=r"\(Bob\)"):
        room.run(room.runtime.terminate(ADA))

    assert room.named("Ada").alive


def test_a_parent_whose_child_cannot_be_read_cannot_complete(room: Room) -> None:
    put_parent_and_unreadable_child(room)
    room.open()

    room.say(ADA, play(("complete", {"result": 1})))

    assert room.provider.results == [{"error": "there are living children: Bob"}]
    assert room.named("Ada").alive


def test_the_name_of_a_child_that_cannot_be_read_stays_its_own(room: Room) -> None:
    put_parent_and_unreadable_child(room)
    recovered(room)

    with pytest.raises(NameTaken):
        room.create("Bob")


def test_a_child_that_can_be_read_again_stands_below_its_parent(room: Room) -> None:
    put_parent_and_unreadable_child(room)
    recovered(room)

    room.reopen(start=False)

    assert (room.named("Bob").parent_id, room.named("Bob").pending) == (ADA, ("boot",))
