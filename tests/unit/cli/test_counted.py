"""Numbers in reports agree with their nouns."""

from __future__ import annotations

import pytest

from powercut.counted import counted
from tests.unit.cli.command_line import powercut


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 images"), (1, "1 image"), (1234, "1,234 images"), ("~1", "~1 images")],
)
def test_a_number_has_its_noun_in_the_singular_or_the_plural(number: int | str, text: str) -> None:
    assert counted(number, "image") == text


def test_a_plural_may_be_given() -> None:
    assert counted(2, "crash", "crashes") == "2 crashes"


def test_one_run_is_counted_in_the_singular() -> None:
    result = powercut("run", "tests.unit.fuzz.broken:sound", "--examples", "1", "-n", "1")
    assert "distinct  1 schedule in 1 run, " in result.stdout
