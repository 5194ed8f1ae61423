"""The state machines that pytest collects are empty leaves.

Hypothesis derives a machine's database key and its derandomized seed from the source of the
leaf class alone. Rules that stand in a base class can be edited without losing the examples
that were kept, and without every derandomized run drawing something else.
"""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.meta.source_tree import ROOT, python_files

# What Python itself puts into the body of a class, whichever its version.
ALWAYS_THERE = {
    "__doc__",
    "__firstlineno__",
    "__module__",
    "__qualname__",
    "__static_attributes__",
    # ``inspect.getmembers``, with which Hypothesis looks for rules, makes an empty one.
    "__annotations__",
    "__annotate_func__",
    "__annotations_cache__",
}


def machines_of(module: ModuleType) -> Iterator[type[RuleBasedStateMachine]]:
    """The machines behind the test cases that pytest collects from a module."""
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, unittest.TestCase):
            machine = getattr(
                getattr(value, "runTest", None), "_hypothesis_state_machine_class", None
            )
            if machine is not None:
                yield machine


def own_names(machine: type[RuleBasedStateMachine]) -> set[str]:
    """The members of the class itself, except Hypothesis's cached test case."""
    return {
        name
        for name in vars(machine)
        if name not in ALWAYS_THERE and name != "TestCase" and not name.startswith("_abc_")
    }


MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in python_files("tests")
    if path.name.startswith("test_")
    and "meta" not in path.parts
    and "TestCase" in path.read_text("utf-8")
]


@pytest.mark.parametrize("module_name", MODULES)
def test_machines_that_pytest_collects_are_empty_leaves(module_name: str) -> None:
    for machine in machines_of(import_module(module_name)):
        assert complaints(machine) == []


def complaints(machine: type[RuleBasedStateMachine]) -> list[str]:
    found = [f"{machine.__qualname__} defines {name}" for name in sorted(own_names(machine))]
    if machine.__mro__[1] is RuleBasedStateMachine:
        found.append(f"{machine.__qualname__} has no base class of ours")
    return found


class Rules(RuleBasedStateMachine):
    @rule()
    def step(self) -> None:
        pass


class Leaf(Rules):
    """Nothing of its own."""


class Heavy(Rules):
    @rule()
    def another(self) -> None:
        pass


def test_a_leaf_is_found_behind_what_pytest_collects() -> None:
    module = ModuleType("as_if_collected")
    module.__dict__.update(TestAlias=Leaf.TestCase, Leaf=Leaf, number=1)
    assert list(machines_of(module)) == [Leaf]


def test_an_empty_leaf_is_accepted() -> None:
    assert complaints(Leaf) == []


def test_a_class_with_a_rule_of_its_own_is_no_empty_leaf() -> None:
    assert complaints(Heavy) == ["Heavy defines another"]


def test_a_class_without_a_base_of_ours_is_no_leaf() -> None:
    assert complaints(Rules) == [
        "Rules defines step",
        "Rules has no base class of ours",
    ]
