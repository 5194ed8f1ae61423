"""What the gate runs of a test that has many cases. With ``--run-stress``, all of them run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import pytest

T = TypeVar("T")


class Sample(Protocol):
    """The type of the fixture ``sample``."""

    def __call__(self, cases: Iterable[T], count: int) -> Sequence[T]:
        """Return ``count`` of the cases, as `spread` does; all of them with ``--run-stress``."""


def spread(cases: Iterable[T], count: int) -> Sequence[T]:
    """Return ``count`` of the cases: the first, the last, and others evenly between them.

    If there are no more than ``count``, all of them are returned.
    """
    assert count > 1
    listed = tuple(cases)
    if len(listed) <= count:
        return listed
    return [listed[round(k * (len(listed) - 1) / (count - 1))] for k in range(count)]


def in_the_gate(cases: Iterable[T], chosen: Callable[[T], bool]) -> list[Any]:
    """Return the cases as parameters; those that are not chosen are marked ``stress``.

    A case that is a tuple has the values of several parameters.
    """
    return [case if chosen(case) else _stress(case) for case in cases]


def _stress(case: object) -> object:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.stress)
