"""docs/reference.md lists the public names of ``powercut``, each with the line of its docstring."""

from __future__ import annotations

import inspect
import re

import powercut
from powercut import Violation
from tests.meta.source_tree import ROOT

ROW = re.compile(r"^\| `(\w+)` \| (.*) \|$", re.MULTILINE)
MEANINGS = dict(ROW.findall((ROOT / "docs" / "reference.md").read_text("utf-8")))
WITHOUT_DOCSTRING = {"MODELS", "Arguments"}


def is_listed_in_the_glossary(name: str) -> bool:
    value = getattr(powercut, name)
    return isinstance(value, type) and issubclass(value, Violation) and value is not Violation


def test_every_public_name_is_listed() -> None:
    public = {name for name in powercut.__all__ if not is_listed_in_the_glossary(name)}
    assert set(MEANINGS) == public


def test_a_name_has_the_meaning_of_its_docstring() -> None:
    for name in set(MEANINGS) - WITHOUT_DOCSTRING:
        line = str(inspect.getdoc(getattr(powercut, name))).partition("\n")[0]
        assert MEANINGS[name] == line.replace("``", "`"), name
