"""A long text in pieces, as the value of a member of a payload or a response."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LongText:
    """A text that need not be in memory as a whole; recorded like the joined ``pieces``.

    Use it in place of a str, as the value of a member of an object. Every call that records it
    iterates over ``pieces`` once.
    """

    pieces: Iterable[str]


def has_long_text(value: object) -> bool:
    """Return whether a value is a ``LongText`` or has one among its members, at any depth."""
    if isinstance(value, LongText):
        return True
    return type(value) is dict and any(map(has_long_text, value.values()))
