"""The tree of agents: what it knows, and what it says when a registry knows something else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from oracles.runtime.seen import Seen
from oracles.shadow_tree import Registries, ShadowTree
from oracles.violation import (
    BrokenTree,
    Duplicated,
    FalseAlarm,
    NameTwice,
    OutOfSync,
    Starved,
    Violation,
)

EMPTY = Registries({}, {}, {}, {}, (), ())


@dataclass(frozen=True)
class View:
    agents: tuple[()] = ()
    user: tuple[()] = field(default=())


def tree() -> ShadowTree:
    """Ada, and her child Bob."""
    shadow = ShadowTree(slots=3)
    shadow.born("a", "Ada", None)
    shadow.born("b", "Bob", "a")
    return shadow


def test_a_name_is_free_again_when_its_agent_has_ended() -> None:
    shadow = tree()
    assert shadow.is_taken("Bob")
    shadow.ended("b")
    assert not shadow.is_taken("Bob")
    assert shadow.children("a") == []


@pytest.mark.parametrize(
    ("agent_id", "name", "parent_id", "violation"),
    [
        ("e", "Ada", None, NameTwice),
        ("b", "Cleo", None, Duplicated),
        ("d", "Dan", "c", BrokenTree),
    ],
)
def test_nobody_is_born_who_cannot_be(
    agent_id: str, name: str, parent_id: str | None, violation: type[Violation]
) -> None:
    shadow = tree()
    shadow.born("c", "Cleo", None)
    shadow.ended("c")
    with pytest.raises(violation):
        shadow.born(agent_id, name, parent_id)


def test_a_parent_does_not_end_before_its_child() -> None:
    shadow = tree()
    shadow.not_ended("a")
    with pytest.raises(BrokenTree):
        shadow.ended("a")


def test_what_is_possible_is_not_refused() -> None:
    shadow = tree()
    shadow.not_born("Ada")
    with pytest.raises(FalseAlarm):
        shadow.not_born("Eve")
    with pytest.raises(FalseAlarm):
        shadow.not_ended("b")


def test_an_agent_that_only_the_tree_has_is_missing_in_the_view() -> None:
    with pytest.raises(OutOfSync, match="the view and the tree"):
        tree().check(View(), Seen.of_files({}), EMPTY)


@pytest.mark.parametrize(
    ("registries", "what"),
    [
        (replace(EMPTY, handlers={"x": "s"}), "handlers"),
        (replace(EMPTY, sessions={"s": "x"}), "sessions"),
        (replace(EMPTY, names={"x": "Xi"}), "names"),
        (replace(EMPTY, children={"x": ()}), "children"),
        (replace(EMPTY, taken=("Ada",)), "names that are taken"),
    ],
)
def test_a_registry_that_has_more_than_the_tree_is_named(registries: Registries, what: str) -> None:
    shadow = ShadowTree(slots=3)
    shadow.check(View(), Seen.of_files({}), EMPTY)
    with pytest.raises(OutOfSync, match=f"the registry of {what} and the tree"):
        shadow.check(View(), Seen.of_files({}), registries)


def test_nothing_is_at_work_when_all_is_idle() -> None:
    with pytest.raises(Starved):
        ShadowTree(slots=3).check(View(), Seen.of_files({}), replace(EMPTY, at_work=("turns",)))
