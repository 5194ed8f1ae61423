"""A long text in pieces, as the value of a member of a payload or a response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from system.errors import NotPlainJson
from system.storage.codec import DEEPEST


@dataclass(frozen=True, slots=True)
class LongText:
    """A text that need not be in memory as a whole; recorded like the joined ``pieces``.

    Use it in place of a str, as the value of a member of an object. Every call that records it
    iterates over ``pieces`` once.
    """

    pieces: Iterable[str]

    def checked(self, place: str) -> Iterator[str]:
        """Yield the pieces; raises ``NotPlainJson``, with the place, for one that is no str."""
        if not isinstance(self.pieces, Iterable):
            raise NotPlainJson(place, f"{type(self.pieces).__name__} has no pieces")
        for piece in self.pieces:
            if type(piece) is not str:
                raise NotPlainJson(place, f"a piece is {type(piece).__name__}, not a str")
            yield piece


def has_long_text(value: object, levels: int = DEEPEST) -> bool:
    """Return whether a value, or a member in the first ``levels`` levels, is a ``LongText``."""
    if isinstance(value, LongText):
        return True
    return (
        type(value) is dict
        and levels > 0
        and any(has_long_text(each, levels - 1) for each in value.values())
    )
