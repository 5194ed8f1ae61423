"""The tables of docs/runtime.md, compared with the code.

``test_barrier_budget.py`` compares the tables of costs.
"""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from importlib import import_module
from inspect import isfunction, signature

import pytest

from system.activity_calls import ActivityCalls
from system.agents.message import MessageKind
from system.agents.tools import TOOLS
from system.agents.turn_recorder import RecordingOptions
from system.collector import CollectionOptions
from system.providers.agentic import AgentService
from system.providers.bare import Model
from system.runtime import Options, Runtime
from system.schedule_calls import ScheduleCalls
from system.trigger_calls import TriggerCalls
from tests.meta.page_tables import quoted, table_rows
from tests.meta.source_tree import ROOT

PAGE = (ROOT / "docs" / "runtime.md").read_text("utf-8")

table = partial(table_rows, PAGE)

CALLS = [quoted(row[0])[0].removeprefix("Runtime.") for row in table("call")]


def test_the_kinds_of_messages() -> None:
    kinds = {quoted(row[0])[0] for row in table("kind")}
    assert kinds == set(MessageKind) - {MessageKind.TRIGGER, MessageKind.REMINDER}


def test_the_tools() -> None:
    assert [name for row in table("tool") for name in quoted(row[0])] == list(TOOLS)


def test_every_call_of_the_operator_is_documented() -> None:
    public = {name for name in vars(Runtime) if not name.startswith("_")}
    # The row of ``recover`` names it.
    assert {call.partition("(")[0] for call in CALLS} == public - {"start"}


@pytest.mark.parametrize("call", [call for call in CALLS if "(" in call])
def test_the_arguments_of_a_call(call: str) -> None:
    name, _, arguments = call.rstrip(")").partition("(")
    parameters = [each for each in signature(getattr(Runtime, name)).parameters if each != "self"]
    assert arguments == ", ".join(parameters)


@pytest.mark.parametrize(
    ("name", "calls"),
    [("triggers", TriggerCalls), ("activities", ActivityCalls), ("schedules", ScheduleCalls)],
)
def test_the_calls_of_an_object_and_their_arguments(name: str, calls: type) -> None:
    documented = {call for row in table("call of an object") for call in quoted(row[0])}
    public = {
        f"{name}.{method}({', '.join([*signature(function).parameters][1:])})"
        for method, function in vars(calls).items()
        if isfunction(function) and not method.startswith("_")
    }
    assert {call for call in documented if call.startswith(f"{name}.")} == public


def shown(default: object) -> str:
    """Return a default as a user writes it."""
    if isinstance(default, RecordingOptions | CollectionOptions):
        assert default == type(default)()
        return f"{type(default).__name__}()"
    return f"{default:_}" if isinstance(default, int) else str(default)


def test_the_options_and_their_defaults() -> None:
    rows = [(quoted(row[0])[0], quoted(row[1])[0]) for row in table("option")]
    assert rows == [(each.name, shown(each.default)) for each in fields(Options)]


@pytest.mark.parametrize(("module", "names"), [row[:2] for row in table("module")])
def test_the_modules_of_the_names(module: str, names: str) -> None:
    owner = import_module(quoted(module)[0])
    assert {getattr(owner, name).__module__ for name in quoted(names)} == {owner.__name__}


@pytest.mark.parametrize("service", [Model, AgentService])
def test_the_methods_of_a_service(service: type) -> None:
    section = PAGE.partition("\n## Providers\n")[2].partition("\n## ")[0]
    methods = [each for name, each in vars(service).items() if not name.startswith("_")]
    for method in filter(isfunction, methods):
        _, *arguments = signature(method).parameters
        assert f"`{method.__name__}({', '.join(arguments)})`" in section
