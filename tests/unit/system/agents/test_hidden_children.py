"""Agents that cannot be read in this boot: their parents must not end before them."""

from __future__ import annotations

import errno

import pytest

from system.agents.tree import Node, Tree
from system.errors import HasChildren, NameTaken
from tests.unit.system.agents.boot import recovered
from tests.unit.system.agents.fake_provider import script
from tests.unit.system.agents.room import (
    ADA,
    BOB,
    ONE,
    TWO,
    Room,
    completed,
    created,
    enqueued,
    log_of,
    spawned,
)


def put_parent_and_child(room: Room) -> None:
    spawning = completed("t", spawned=[spawned(BOB, TWO, "Bob")])
    room.put_session(ONE, [*created(ADA, "Ada"), spawning])
    room.put_session(TWO, [*created(BOB, "Bob", ONE), enqueued("boot", ADA, BOB, "bootstrap")])


def put_parent_and_unreadable_child(room: Room) -> None:
    put_parent_and_child(room)
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

    room.say(ADA, script(("complete", {"result": 1})))

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


def test_a_parent_may_end_whose_unreadable_child_has_completed(room: Room) -> None:
    spawning = completed("t", spawned=[spawned(BOB, TWO, "Bob")])
    result = enqueued("m", BOB, ADA, "response", "done")
    room.put_session(ONE, [*created(ADA, "Ada"), spawning, result])
    room.put_session(TWO, created(BOB, "Bob", ONE))
    room.files.fail("pread", log_of(TWO), errno.EIO)
    recovered(room)
    assert not room.runtime.is_taken("Bob")

    room.run(room.runtime.terminate(ADA))

    assert not room.named("Ada").alive


def test_a_child_whose_parent_cannot_be_read_cannot_complete(room: Room) -> None:
    put_parent_and_child(room)
    room.files.fail("pread", log_of(ONE), errno.EIO)
    room.open()

    room.say(BOB, script(("complete", {"result": 1})))

    assert room.provider.results == [
        {"error": "the parent of this agent cannot be read, and would not get its result"}
    ]
    assert room.named("Bob").alive
