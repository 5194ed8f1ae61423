"""A long text in pieces, as the value of a member of a payload or a response."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from system.storage.codec import DEEPEST


@dataclass(frozen=True, slots=True)
class LongText:
    """A text that need not be in memory as a whole; recorded like the joined ``pieces``.

    Use it in place of a str, as the value of a member of an object. Every call that records it
    iterates over ``pieces`` once.
    """

    pieces: Iterable[str]


def has_long_text(value: object, levels: int = DEEPEST) -> bool:
    """Return whether a value, or a member in the first ``levels`` levels, is a ``LongText``."""
    if isinstance(value, LongText):
        return True
    return (
        type(value) is dict
        and levels > 0
        and any(has_long_text(each, levels - 1) for each in value.values())
    )
