"""The mutants of this repository: there is one for each known bug, and each can be planted."""

from __future__ import annotations

import re

import pytest

from tests.registry import REGISTRY

BUGS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22)


def test_every_known_bug_has_a_mutant() -> None:
    found = [re.fullmatch(r"R(\d+)(-.*)?", tag) for tag in REGISTRY.config.mutants]
    assert tuple(dict.fromkeys(int(bug[1]) for bug in found if bug is not None)) == BUGS


@pytest.mark.parametrize("tag", REGISTRY.config.mutants)
def test_mutant_applies_to_the_source_as_it_is(tag: str) -> None:
    with REGISTRY.mutant(tag).planted() as make_target:
        assert make_target().actions()
