"""The tables of docs/runtime.md, compared with the code.

``agents/test_line_schemas.py`` compares the table of lines, ``test_barrier_budget.py`` that of
costs.
"""

from __future__ import annotations

from functools import partial
from inspect import signature

import pytest

from system.agents.message import MessageKind
from system.agents.tools import TOOLS
from system.runtime import Runtime
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
