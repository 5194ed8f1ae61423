"""What is documented is imported from ``powercut``, and only when it is used."""

from __future__ import annotations

import pytest

import powercut
from tests.meta.source_tree import run_python


def test_every_name_of_the_front_door_opens() -> None:
    for name in powercut.__all__:
        assert getattr(powercut, name).__class__ is not type(None), name
    assert dir(powercut) == sorted(powercut.__all__)


def test_a_name_that_is_not_there_is_an_ordinary_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'powercut' has no attribute 'exlpore'"):
        _ = powercut.exlpore


def test_opening_the_door_loads_nothing_behind_it() -> None:
    script = "import sys, powercut; print(sorted(n for n in sys.modules if n.startswith('sim')))"
    assert run_python("-c", script).stdout == "[]\n"
