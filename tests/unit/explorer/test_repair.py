"""The repair keeps no barrier that the others make unnecessary."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from powercut.explorer import repair as module

FAILURES = ("first", "second", "third")


class Searched:
    """Finds the barriers a, b and c in this order; each failure is prevented by some of them."""

    preventing: tuple[str, ...] = ()

    def __init__(self, *_: object) -> None:
        pass

    def left(self, barriers: Collection[str]) -> tuple[str, ...]:
        return FAILURES[len(barriers) :]

    def better(self, barriers: tuple[str, ...], _left: object) -> tuple[Any, Any]:
        more = (*barriers, "abc"[len(barriers)])
        return more, self.left(more)

    def moments(self, barriers: Collection[str]) -> set[int]:
        return {
            number
            for number, preventing in enumerate(self.preventing)
            if not set(preventing) & set(barriers)
        }


@pytest.mark.parametrize(
    ("preventing", "kept"),
    [
        (("c",), "c"),
        (("a",), "a"),
        (("abc",), "c"),
        (("a", "c"), "ac"),
        (("ab", "bc"), "b"),
        (("a", "b", "c"), "abc"),
    ],
)
def test_every_barrier_that_the_others_make_unnecessary_is_removed(
    preventing: tuple[str, ...], kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_Search", Searched)
    monkeypatch.setattr(Searched, "preventing", preventing)
    nothing: Any = None
    found: Any = module.repair(nothing, nothing)
    assert found.barriers == tuple(kept)
