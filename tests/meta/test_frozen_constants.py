"""A derandomized run draws the same inputs whatever else happens to be imported."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis.internal.conjecture import providers

from powercut.fuzz.hypothesis_names import missing_names
from powercut.fuzz.hypothesis_settings import freeze_constants
from tests.meta.source_tree import run_python

# Literals that a random draw does not give by accident.
ODD = "ODD_NUMBERS = [77001, 77003, 77017, 77023, 77029, 77041]\nODD_WORD = 'zyzzyva quay'\n"

DRAW = """
import sys
from pathlib import Path
if "import the odd module" in sys.argv:
    import odd_module
from hypothesis import given, settings, strategies as st
{freeze}

drawn = []

@settings(derandomize=True, database=None, max_examples=300)
@given(st.integers(0, 100_000), st.text("abcdefghijklmnopqrstuvwxyz "))
def draws(number, word):
    drawn.append((number, word))

draws()
print(ascii(drawn))
"""

FREEZE = """
from powercut.fuzz.hypothesis_settings import install_profiles
install_profiles(Path.cwd())
"""


@cache
def drawn(*, freeze: bool, odd: bool) -> str:
    """The draws of one derandomized test in a process of its own."""
    with TemporaryDirectory() as directory:
        (Path(directory) / "odd_module.py").write_text(ODD, "utf-8")
        script = Path(directory) / "draw.py"
        script.write_text(DRAW.format(freeze=FREEZE if freeze else ""), "utf-8")
        arguments = ["import the odd module"] if odd else []
        finished = run_python(str(script), *arguments, cwd=script.parent)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_derandomized_draws_do_not_depend_on_the_modules_that_are_imported() -> None:
    assert drawn(freeze=True, odd=True) == drawn(freeze=True, odd=False)


def test_without_the_freeze_they_would() -> None:
    """Without the freeze, draws depend on the imported modules; else the freeze can be removed."""
    assert drawn(freeze=False, odd=True) != drawn(freeze=False, odd=False)


def test_the_edges_of_a_disk_are_drawn_more_often_than_by_chance() -> None:
    numbers = [number for number, _ in eval(drawn(freeze=True, odd=False))]
    assert any(number in {4095, 4096, 4097, 511, 512, 513} for number in numbers)


def test_a_hypothesis_without_the_private_name_is_left_as_it_is_and_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert missing_names() == []
    monkeypatch.delattr(providers, "_get_local_constants")
    freeze_constants()
    assert not hasattr(providers, "_get_local_constants")
    (missing,) = missing_names()
    assert missing == (
        "Hypothesis has no hypothesis.internal.conjecture.providers._get_local_constants: "
        "the examples of a derandomized profile depend on the modules imported"
    )
